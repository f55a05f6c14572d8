"""How long a trial takes beside what it measures, by the kernel that it is on. Pure; for estimates only.

The fact that constrains it: in a guest of user-mode-linux a system call, a fork and a packet cost several of the
host's, and what is copied over NFS there is paid by the call. A tenth of such a trial is what it measures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from plimsoll.experiment import Experiment
from plimsoll.experiment.places import used_places
from plimsoll.run.sizes import data_bytes

_CLONE_BYTES_PER_S: Final = 500 * 2**20
_CLUSTER_BYTES: Final = 62 * 2**20  # of a new cluster with its log, beside the data
_TRANSFER_BYTES: Final = 64 * 2**10  # where a mount does not say


@dataclass(frozen=True)
class Pace:
    """Of one kind of kernel. Seconds of a quiet machine with two cores."""

    trial_s: float  # clone a small cluster, start, settle, check, stop
    transaction_s: float
    clients_at_once: int
    boot_s: float = 0.0
    nfs_trial_s: float = 0.0  # more of a trial whose files lie on NFS: a server, a mount, 1,300 files made over it
    nfs_call_s: float = 0.0


HOST: Final = Pace(trial_s=6.0, transaction_s=0.001, clients_at_once=4)
# CPU time of guests beside other work: 8 s of trials on a local place, 16 to 20 s by NFS with 8 KiB, 39 s with 1 KiB.
USER_MODE: Final = Pace(
    trial_s=8.0, transaction_s=0.004, clients_at_once=1, boot_s=10.0, nfs_trial_s=6.5, nfs_call_s=0.00028
)
_PACES: Final = {"guest": USER_MODE}


def pace_of(experiment: Experiment) -> Pace:
    """Of the kernel that its trials are on."""
    return _PACES.get(experiment.kernel_kind, HOST)


def around_s(settings: Experiment, pace: Pace, *, is_private: bool) -> float:
    """Of a trial of these settings, beside warm-up and measured segment."""
    if not is_private:
        return pace.trial_s
    return pace.trial_s + data_bytes(settings) / _CLONE_BYTES_PER_S + _by_nfs_s(settings, pace)


def _by_nfs_s(settings: Experiment, pace: Pace) -> float:
    places = settings.environment.places
    if not any(places[name].nfs.is_given for name in used_places(places, settings.target.files.given.values())):
        return 0.0
    data = places.get(settings.target.files.data or "")
    if data is None or not data.nfs.is_given:
        return pace.nfs_trial_s
    at_once = int(data.mount.get("wsize", _TRANSFER_BYTES))
    return pace.nfs_trial_s + pace.nfs_call_s * (_CLUSTER_BYTES + data_bytes(settings)) / at_once
