"""Run as a script inside a new process: enter the groups, then drop to the user, then become the program.

The constraint: whatever a process touches before it is in the group is charged to somebody else for good, and a
process that has dropped its rights can no longer enter. So the order is groups, CPUs, user, exec; and no site packages
are loaded (`python -I -S`), since nothing here may depend on where Plimsoll is installed. Nothing may be imported
after the user was dropped either: he may not be allowed to read Python's own folder.

The request is one JSON argument. What goes wrong is written to the pipe `report`, which a successful exec closes.
"""

import json
import os
import signal
import sys


def main() -> None:
    request = json.loads(sys.argv[1])
    report = request["report"]
    os.set_inheritable(report, False)
    item = ""
    try:
        for item in request["procs"]:
            with open(item, "w") as procs:  # noqa: PTH123 (pathlib doubles the start-up time)
                procs.write(str(os.getpid()))
        if request["cpus"] is not None:
            item = f"CPUs {request['cpus']}"
            os.sched_setaffinity(0, request["cpus"])
        if request["uid"] is not None:
            item = f"user {request['uid']}"
            os.setgroups(request["groups"])
            os.setresgid(request["gid"], request["gid"], request["gid"])
            os.setresuid(request["uid"], request["uid"], request["uid"])
        if request["cwd"] is not None:
            item = request["cwd"]
            os.chdir(item)
        # Python ignores these; the program expects to find them as a shell would leave them.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        item = request["program"]
        os.execve(item, request["argv"], os.environ)
    except BaseException as error:
        os.write(report, f"{item}: {getattr(error, 'strerror', None) or error}".encode())
        os._exit(126)


if __name__ == "__main__":
    main()
