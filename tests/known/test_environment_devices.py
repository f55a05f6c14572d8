"""Devices under a path, on a real loop device: which read-ahead counts, and that the knob turns that one."""

import contextlib
import os
import stat
import subprocess
import sys

from plimsoll.environment import Journal, ReadAhead, devices

TOOLS = {**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}


def _call(*argv) -> str:
    return subprocess.run([*argv], check=True, capture_output=True, text=True, env=TOOLS).stdout.strip()


@contextlib.contextmanager
def _loop_mounted(state, direct):
    image, point = state.root / "image", state.root / "mounted"
    with image.open("wb") as file:
        file.truncate(16 << 20)
    point.mkdir()
    _call("mkfs.ext4", "-q", str(image))
    loop = _call("losetup", "--find", "--show", f"--direct-io={direct}", str(image))
    try:
        _call("mount", loop, str(point))
        try:
            yield loop.removeprefix("/dev/"), point
        finally:
            _call("umount", str(point))
    finally:
        _call("losetup", "--detach", loop)
        point.rmdir()
        image.unlink()


def test_a_loops_own_read_ahead_counts_and_the_disks_only_through_the_page_cache(needs, state, run_id):
    needs("root", "loop devices and mkfs.ext4")
    (disk,) = devices.devices_of(state.root)
    before = ReadAhead(state.root).show()
    for direct in ("on", "off"):
        with _loop_mounted(state, direct) as (loop, point):
            (device,) = devices.devices_of(point)
            described = devices.describe(device)
            assert (device.name, device.decides) == (loop, True)
            assert [below.name for below in device.under] == [disk.name]
            through_cache = described["loop_direct_io"] == 0
            assert device.under[0].decides is through_cache
            assert set(ReadAhead(point).show()) == ({loop, disk.name} if through_cache else {loop})
            assert devices.mount_of(point / "not/yet/there").point == str(point)
            with Journal.create(state, f"{run_id}-{direct}") as journal:
                ReadAhead(point).set(512, journal)
                assert set(ReadAhead(point).show().values()) == {512}
                if not through_cache:
                    assert ReadAhead(state.root).show() == before
        assert ReadAhead(state.root).show() == before


def test_a_mapped_device_is_known_by_its_number_where_no_udev_makes_links(needs, tmp_path, monkeypatch):
    needs("root")
    sysfs, node = tmp_path / "sys", tmp_path / "mapper"
    for folder in ("block/dm-0/queue", "dev/block", "class/block", "fs/btrfs/some-uuid/devices"):
        (sysfs / folder).mkdir(parents=True)
    for link in ("dev/block/253:7", "class/block/dm-0", "fs/btrfs/some-uuid/devices/dm-0"):
        (sysfs / link).symlink_to(sysfs / "block/dm-0")
    os.mknod(node, stat.S_IFBLK | 0o600, os.makedev(253, 7))
    monkeypatch.setattr(devices, "_SYS", sysfs)
    mounted = devices.Mount(str(node), str(tmp_path), "btrfs", [], "/", "0:99")
    monkeypatch.setattr(devices, "mount_of", lambda _: mounted)
    assert [device.name for device in devices.devices_of(tmp_path)] == ["dm-0"]


APART = ("unshare", "--mount", "--propagation", "unchanged", "sh", "-ec")
IN_A_CHROOT = """
import os, sys
from pathlib import Path
from plimsoll.environment import devices

os.chroot(sys.argv[1])
mount = devices.mount_of(Path("/not/yet/there"))
print(mount.point, mount.source, mount.fs, mount.options[0], *(device.name for device in devices.devices_of(Path("/"))))
"""


def test_a_chroot_whose_root_is_no_mount_point_has_its_device(needs, state):
    """mountinfo, as a process in it reads it, lists no mount that holds its root."""
    needs("root", "loop devices and mkfs.ext4")
    with _loop_mounted(state, "on") as (loop, point):
        root = point / "chroot"
        for folder in ("proc", "sys"):
            (root / folder).mkdir(parents=True)
        seen = f"for each in proc sys; do mount --rbind /$each {root}/$each; done"
        script = f'mount --make-rprivate {point}; {seen}; exec "$@"'
        said = _call(*APART, script, "sh", sys.executable, "-c", IN_A_CHROOT, str(root))
    assert said.split() == ["/", f"/dev/{loop}", "ext4", "rw", loop]
