"""/proc/self/mountstats in the forms that kernels have had, before and after, and beside a capture."""

from __future__ import annotations

import pytest

from plimsoll.analysis.captures.mountstats import MountstatsError, compare, grown, moved, parse

# 2.6 to 5.2: iostats 1.0, without errors; other file systems around it.
OLD = """\
device rootfs mounted on / with fstype rootfs
device proc mounted on /proc with fstype proc
device filer:/vol/pg\\040data mounted on /mnt/pg\\040data with fstype nfs statvers=1.0
\topts:\trw,vers=3,rsize=8192,wsize=8192,namlen=255,acregmin=3,hard,proto=tcp,timeo=600,retrans=2,sec=sys
\tage:\t4711
\tcaps:\tcaps=0x3fc7,wtmult=4096,dtsize=4096,bsize=0,namlen=255
\tsec:\tflavor=1,pseudoflavor=1
\tevents:\t1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25
\tbytes:\t8192 8192 0 0 8192 8192 2 2
\tRPC iostats version: 1.0  p/v: 100003/3 (nfs)
\txprt:\ttcp 875 1 1 0 0 99 99 0 120 0
\tper-op statistics
\t        NULL: 0 0 0 0 0 0 0 0
\t     GETATTR: 10 10 0 1200 1120 1 5 6
\t        READ: {read}
\t       WRITE: 20 21 1 170000 3200 3 40 44

device tmpfs mounted on /run with fstype tmpfs
"""
# From 5.3 on: iostats 1.1 with errors, NFS 4 with its own lines, a line a connection.
NEW = """\
device server:/export mounted on /mnt/a with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2,rsize=1048576,wsize=1048576,nconnect=2,hard,proto=tcp
\tage:\t60
\timpl_id:\tname='',domain='',date='0,0'
\tcaps:\tcaps=0x3ffbffdf,wtmult=512,dtsize=1048576,bsize=0,namlen=255
\tnfsv4:\tbm0=0xfdffbfff,bm1=0xf9be3e,bm2=0x68800,acl=0x3,sessions,pnfs=not configured,lease_time=90,lease_expired=0
\tsec:\tflavor=1,pseudoflavor=1
\tevents:\t1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27
\tbytes:\t8192 8192 0 0 8192 8192 2 2
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
\txprt:\ttcp 0 0 1 0 5 30 30 0 30 0 2 0 0
\txprt:\ttcp 0 0 1 0 5 30 30 0 30 0 2 0 0
\tper-op statistics
\t        NULL: 1 1 0 44 24 0 0 0 0
\t        READ: {read}
\t      FSINFO: 1 1 0 164 160 0 0 0 0
\t SERVER_CAPS: 2 2 0 328 320 0 1 1 0
\t     GETATTR: 4 4 0 656 960 0 2 2 1
\t    SEQUENCE: 0 0 0 0 0 0 0 0 0
"""


def test_an_old_kernel_has_no_errors_and_names_with_blanks() -> None:
    before, after = (
        parse(OLD.format(read=read)) for read in ("100 100 0 9 9 10 200 220", "150 153 2 10 20 35 300 345")
    )
    assert list(after) == ["/mnt/pg data"]
    mount = after["/mnt/pg data"]
    assert (mount.device, mount.version, mount.age_s) == ("filer:/vol/pg data", 3, 4711)
    assert "rsize=8192" in mount.options
    grew = grown(before["/mnt/pg data"], mount)
    assert list(grew) == ["READ"]
    assert grew["READ"] == {
        "calls": 50,
        "retransmissions": 3,
        "timeouts": 2,
        "errors": None,
        "bytes_sent": 1,
        "bytes_received": 11,
        "queue_ms_mean": 0.5,
        "rtt_ms_mean": 2.0,
        "execute_ms_mean": 2.5,
    }


def test_a_new_kernel_has_errors_and_several_connections() -> None:
    before, after = (parse(NEW.format(read=read))["/mnt/a"] for read in ("0 0 0 0 0 0 0 0 0", "7 7 0 1 1 0 14 14 3"))
    assert after.version == 4
    assert grown(before, after)["READ"]["errors"] == 3


def test_both_accounts_agree_by_what_is_on_the_wire_or_the_difference_is_told() -> None:
    mount = parse(NEW.format(read="7 9 0 1 1 0 14 14 3"))["/mnt/a"]
    nothing = parse(NEW.format(read="0 0 0 0 0 0 0 0 0"))["/mnt/a"]
    fresh = type(mount)(mount.device, mount.place, 4, (), 0, dict.fromkeys(nothing.operations, (0,) * 9))
    rows = {
        row["operation"]: row
        for row in compare(grown(fresh, mount), {"GETATTR": (7, 0), "READ": (6, 2), "NULL": (1, 0)}, 4)
    }
    assert set(rows) == {"GETATTR", "READ", "NULL"}
    assert (rows["GETATTR"]["client_calls"], rows["GETATTR"]["difference"]) == (7, 0)
    assert (rows["READ"]["client_calls"], rows["READ"]["difference"]) == (7, -1)
    assert rows["READ"]["client_retransmissions"] == rows["READ"]["capture_retransmissions"] == 2
    by_name = {row["operation"] for row in compare(grown(fresh, mount), {}, 3)}
    assert "FSINFO" in by_name, "NFS 3 has it as a call of its own"


def test_what_cannot_be_compared_or_read_is_refused() -> None:
    old, new = (
        parse(OLD.format(read="9 9 0 0 0 0 0 0"))["/mnt/pg data"],
        parse(NEW.format(read="0 0 0 0 0 0 0 0 0"))["/mnt/a"],
    )
    with pytest.raises(MountstatsError, match="two mounts"):
        grown(old, new)
    less = parse(OLD.format(read="8 8 0 0 0 0 0 0"))["/mnt/pg data"]
    with pytest.raises(MountstatsError, match="mounted anew"):
        grown(old, less)
    with pytest.raises(MountstatsError, match="READ: 9 9"):
        parse(OLD.format(read="9 9"))
    with pytest.raises(MountstatsError, match="the text is cut"):
        parse(NEW[: NEW.index("\tper-op")])
    assert parse("device proc mounted on /proc with fstype proc\n") == {}


def test_bytes_are_those_of_the_mounts_that_are_asked_for() -> None:
    read = "1 1 0 9 9 10 200 220 0"
    before = NEW.format(read=read)
    after = before.replace("bytes:\t8192 8192 0 0 8192 8192 2 2", "bytes:\t18192 8192 4096 0 9192 8192 3 2")
    assert moved(before, after, ["/mnt/a"]) == {
        "read": 10_000, "written": 0, "read_direct": 4096, "written_direct": 0, "from_server": 1000, "to_server": 0,
        "pages_read": 1, "pages_written": 0,
    }  # fmt: skip
    assert moved(before, after, ["/mnt/b"]) is None
    assert moved(after, before, ["/mnt/a"]) is None, "it was mounted anew"
    assert moved(before, after.replace("\tbytes:", "\tother:"), ["/mnt/a"]) is None
