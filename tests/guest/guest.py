"""A guest machine: a kernel, a script and a disk go in; what the script left in /out and the console come out.

The constraint: there may be no KVM, so every instruction is emulated, the guest is given little to do, and the machine
is killed when its time is up. Results come back on a disk, since a console loses and rewrites bytes.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from debian_kernel import TOOLS, Kernel

MEMORY_MIB = 512
DISK_BYTES = 512 << 20  # sparse; XFS makes none below 300 MiB
RESULT_BYTES = 8 << 20
INIT = Path(__file__).with_name("init")
NEEDED = ("qemu-system-x86_64", "busybox", "cpio", "depmod", "modprobe", "ldd", "setpriv")
MAKE_FILE_SYSTEM = {"ext4": ("mkfs.ext4", "-q", "-F"), "xfs": ("mkfs.xfs", "-q", "-f")}
# The agent's verb `watch` with the request that is on the disk, as parts of a script.
BEGIN_WATCHING = """mkfifo /tmp/told || exit 4
plimsoll-agent watch </tmp/told >/out/lines 2>/out/errors &
agent=$!
exec 3>/tmp/told
cat /mnt/request >&3
until grep -q '"watching"' /out/lines; do
    kill -0 $agent || exit 5
    sleep 0.2
done
"""
END_WATCHING = "echo stop >&3; wait $agent"


def available() -> bool:
    """Are the tools there to build and boot one?"""
    return all(shutil.which(tool, path=TOOLS["PATH"]) for tool in NEEDED)


@dataclass(frozen=True)
class Outcome:
    """`files`: what the script left in /out, by name. `exit`: the script's; None if the guest never came so far."""

    files: Mapping[str, bytes]
    console: str
    exit: int | None
    seconds: float

    def text(self, name: str) -> str:
        return self.files[name].decode(errors="replace") if name in self.files else ""


def run(
    kernel: Kernel,
    script: str,
    programs: list[Path],
    file_system: str,
    disk: Mapping[str, bytes],
    seconds_max: float,
    processors: int = 2,
) -> Outcome:
    """Boot the kernel with `programs` in /bin and the files of `disk` in /mnt, none of them cached; run the script."""
    with tempfile.TemporaryDirectory(prefix="plimsoll-guest-", dir="/var/tmp") as name:
        room = Path(name)
        _initramfs(room, kernel, script, programs, disk)
        for image, size in (("disk", DISK_BYTES), ("result", RESULT_BYTES)):
            (room / image).touch()
            os.truncate(room / image, size)
        make = [*MAKE_FILE_SYSTEM[file_system], str(room / "disk")]
        subprocess.run(make, check=True, capture_output=True, env=TOOLS)
        started = time.monotonic()
        _boot(room, kernel, seconds_max, processors)
        seconds = time.monotonic() - started
        files = _result(room / "result")
        console = (room / "console").read_text(errors="replace")
    ended = files.get("exit", b"").strip()
    return Outcome(files, console, int(ended) if ended else None, seconds)


def _initramfs(room: Path, kernel: Kernel, script: str, programs: list[Path], disk: Mapping[str, bytes]) -> None:
    root = room / "initramfs"
    for folder in ("bin", "sbin", "modules"):
        (root / folder).mkdir(parents=True)
    shutil.copy(INIT, root / "init")
    (root / "init").chmod(0o755)
    (root / "script").write_text(script)
    for name, content in disk.items():
        there = root / "disk" / name
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_bytes(content)
    for module in kernel.modules:
        shutil.copy(module, root / "modules")
    busybox = shutil.which("busybox", path=TOOLS["PATH"])
    for program in [Path(busybox or ""), *programs]:
        shutil.copy(program, root / "bin" / program.name)
        for library in _libraries(program):
            there = root / library.relative_to("/")
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, there)
    names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    with (room / "initramfs.cpio").open("wb") as archive:
        argv = ["cpio", "--quiet", "-o", "-H", "newc", "-R", "0:0"]
        subprocess.run(argv, input=names.encode(), stdout=archive, cwd=root, check=True)


def _libraries(program: Path) -> list[Path]:
    """The shared libraries and the loader, by the paths under which they are looked for; none of a static program."""
    shown = subprocess.run(["ldd", str(program)], capture_output=True, text=True, env=TOOLS, check=False).stdout
    assert "not found" not in shown, shown
    return [Path(path) for path in re.findall(r"(/\S+) \(0x", shown)]


def _boot(room: Path, kernel: Kernel, seconds_max: float, processors: int) -> None:
    argv = ["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64"]
    argv += ["-accel", "tcg", "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]
    argv += ["-m", str(MEMORY_MIB), "-smp", str(processors), "-serial", f"file:{room / 'console'}"]
    argv += ["-kernel", str(kernel.image), "-initrd", str(room / "initramfs.cpio")]
    # An emulator that is kept from running loses ticks, from which a kernel concludes that its timer does not work.
    argv += ["-append", "console=ttyS0 panic=-1 loglevel=4 mitigations=off no_timer_check"]
    for drive in ("disk", "result"):
        argv += ["-drive", f"file={room / drive},format=raw,if=virtio,cache=unsafe"]
    with (room / "qemu.log").open("wb") as log:
        machine = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=TOOLS)
        try:
            code = machine.wait(timeout=seconds_max)
        except subprocess.TimeoutExpired:
            return  # what it had not handed back is missing, and the console tells how far it came
        finally:
            machine.kill()
            machine.wait()
    assert code == 0, (room / "qemu.log").read_text()


def _result(disk: Path) -> dict[str, bytes]:
    try:
        with tarfile.open(fileobj=io.BytesIO(disk.read_bytes()), mode="r:") as archive:
            found = {member.name: archive.extractfile(member) for member in archive if member.isfile()}
            return {name.removeprefix("./"): file.read() for name, file in found.items() if file is not None}
    except tarfile.ReadError:  # the guest never wrote it
        return {}
