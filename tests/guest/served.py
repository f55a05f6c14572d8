"""In a guest of user-mode-linux: a database by NFS under load, or what is left of it after the guest was killed.

Its disk holds a cluster in the folder served. The part "load" exports that folder, mounts it from itself, starts the
server on the mount and lets order entry run for ever, whose ledger lies on the host's file system, where a kill of the
guest leaves it. The part "check" starts the server on the folder itself and compares the ledger with the tables.
The environment has PLIMSOLL_ROOM, PLIMSOLL_PART and PLIMSOLL_EXPORT (sync or async); room/plan.json the rest.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from plimsoll.environment.places.nfs import nfsd
from plimsoll.environment.places.nfs.nfsd import Exported, Wanted
from plimsoll.run import agent
from plimsoll.run.host import HERE
from plimsoll.target import PostgresServer

# No checkpoint, so that what is lost is the log's end and not a part of the data.
SETTINGS: dict[str, bool | int | float | str] = {
    "autovacuum": False,
    "shared_buffers": "64MB",
    "checkpoint_timeout": "1d",
    "max_wal_size": "4GB",
}
# Of the guest, in both arms: what is written lies in memory until somebody syncs it, however slow the machine is.
MEMORY = {"dirty_writeback_centisecs": "0", "dirty_background_ratio": "60", "dirty_ratio": "80"}
FILES, CLIENTS, MOUNT = Path("/run/nfsd"), Path("/run/nfs-clients"), Path("/run/filer")
START_SECONDS = 600.0


def server_on(data: Path, run_dir: Path, plan: dict[str, Any]) -> PostgresServer:
    """The server with its data there; not started."""
    run_dir.mkdir(mode=0o755)
    return PostgresServer(Path(plan["bin_dir"]), data, run_dir, plan["user"], HERE.start_as)


def workload(plan: dict[str, Any]) -> dict[str, Any]:
    """Of the agent's requests."""
    return {"name": "order_entry", "warehouses": 1, "seed": plan["seed"], "ledger": True}


def load_request(server: PostgresServer, plan: dict[str, Any], out: Path, stop: dict[str, Any]) -> dict[str, Any]:
    """Two terminals without users' times."""
    return {
        "target": server.load_connection.as_request(),
        "workload": workload(plan),
        "clients": 2,
        "stop": stop,
        "first_index": plan.get("next_index", 0),
        "out": str(out),
    }


def by_nfs(room: Path, exported: str) -> Path:
    """The mount of the disk's folder; what the kernel tells of the export is in room/export.json."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for module in ("nfsd", "nfsv4"):
        subprocess.run(["modprobe", "-d", "/run/plimsoll", module], check=True)
    for folder in (FILES, CLIENTS, MOUNT):
        folder.mkdir()
    subprocess.run(["mount", "-t", "nfsd", "nfsd", str(FILES)], check=True)
    disk = (room / "disk").resolve()
    served = Exported(str(disk / "served"), exported == "sync", wdelay=True)
    wanted = Wanted(str(FILES), str(CLIENTS), str(disk), [served], ["4.2"], 4, 2049, None)
    nfsd.start(wanted)
    assert (FILES / "v4_end_grace").read_text().strip() == "Y", "new opens wait for the grace period"
    options = f"vers=4.2,proto=tcp,addr={nfsd.ADDRESS},clientaddr={nfsd.ADDRESS},hard"
    mount = ["mount", "-t", "nfs4", "-i", "-o", options, f"{nfsd.ADDRESS}:/served", str(MOUNT)]
    subprocess.run(mount, check=True, timeout=START_SECONDS)
    (room / "export.json").write_text(json.dumps(nfsd.in_force(FILES, served.path)["export"]))
    return MOUNT


def load(room: Path, plan: dict[str, Any]) -> None:
    """Until the guest is killed."""
    for name, value in MEMORY.items():
        Path("/proc/sys/vm", name).write_text(value)
    server = server_on(by_nfs(room, os.environ["PLIMSOLL_EXPORT"]) / "data", Path("/run/server"), plan)
    server.configure(SETTINGS, None)
    server.start(START_SECONDS)
    out = room / "killed"
    out.mkdir()
    (room / "durability.json").write_text(json.dumps(server.describe()["durability"]))
    agent.call("load", load_request(server, plan, out, {"seconds": 86400}))


def check(room: Path, plan: dict[str, Any]) -> None:
    """What became of what was acknowledged: room/checked.json."""
    # Of the server that went with the guest; another process of this one may have its number.
    (room / "disk/served/data/postmaster.pid").unlink(missing_ok=True)
    server = server_on(room / "disk/served/data", Path("/run/server"), plan)
    server.configure(SETTINGS, None)
    server.start(START_SECONDS)
    segments = [str(room / folder / "summary.json") for folder in ("before", "killed")]
    request = {"target": server.load_connection.as_request(), "workload": workload(plan), "segments": segments}
    checked = agent.call("check", request)
    (room / "checked.part").write_text(json.dumps(checked))
    (room / "checked.part").rename(room / "checked.json")  # whoever waits for it finds the whole of it
    server.stop()


def main() -> None:
    room = Path(os.environ["PLIMSOLL_ROOM"])
    plan = json.loads((room / "plan.json").read_text())
    {"load": load, "check": check}[os.environ["PLIMSOLL_PART"]](room, plan)


if __name__ == "__main__":
    main()
