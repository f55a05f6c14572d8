"""Where the limits of dirty pages hold, which depends on the version of control groups."""

from __future__ import annotations

from plimsoll.experiment import Experiment


def dirty_limits_caveat(settings: Experiment, group_version: int) -> str | None:
    """What the reader has to know about the limits of dirty pages in a group with a memory limit."""
    names = {"vm.dirty_bytes", "vm.dirty_background_bytes"}
    shares = {"vm.dirty_ratio", "vm.dirty_background_ratio"}
    wanted = set(settings.environment.sysctl)
    if group_version == 1 and not wanted & (names | shares):
        return "cgroup v1: dirty limits are the host's, not the group's (environment.sysctl can set vm.dirty_bytes)"
    if group_version == 1:
        return "cgroup v1: the vm.dirty_* limits apply to the whole host: pages dirtied by other programs count too"
    if wanted & names:
        return (
            "cgroup v2: the kernel turns vm.dirty_*bytes into a share of the host's available memory and gives the "
            "group that share of its own; set vm.dirty_ratio and vm.dirty_background_ratio instead"
        )
    return None
