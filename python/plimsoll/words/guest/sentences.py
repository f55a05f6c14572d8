"""What a run on a guest kernel does not say, and how its clock went; says nothing that the verdict does not hold."""

from typing import Any

from plimsoll.analysis.guest.document import ClockOfBoot, GuestOfRun
from plimsoll.words.part import Sentences

Json = dict[str, Any]
SECTION = "guest"


def guest_of(verdict: Json) -> GuestOfRun | None:
    """None of a run on the host's kernel, and of records of before there were others."""
    guest: GuestOfRun | None = verdict.get("guest")
    return guest


def kernel_words(guest: GuestOfRun) -> str:
    """ "user-mode-linux 6.1.176"."""
    return f"{guest['kernel']} {guest['version']}"


def cannot_words(guest: GuestOfRun) -> list[str]:
    """Each thing that it cannot say, with the reason."""
    said = {
        "speed": "How fast the host would be: a system call, page fault or switch of a guest is several of the host's"
        if guest.get("accelerator") is None
        else "How fast the host would be: every instruction is emulated",
        "cpus": "What more CPUs would do: the guest has one, which server and load share",
        "tick": f"Delays shorter than {guest['tick_ms'] or 0:g} ms: they are rounded up to that, the kernel's tick",
        "probes": "Where time goes in the kernel: it has no BPF type information, so there is no breakdown, no profile "
        "and no probe of its page cache",
        "images": "How fast a device is: the guest's disks are images, which lie in the host's page cache"
        if guest.get("accelerator") != "kvm"
        else "How fast a device is: the guest's disks are images on a file system of the host's",
        "sweeps": "How results change with CPUs or memory of the machine: such factors are refused",
    }
    return [said[name] for name in guest["cannot"]]


def clock_words(clock: ClockOfBoot) -> str:
    """How the guest's clock stood to the host's over one boot."""
    start, end, uncertain, drift = (
        clock["skew_start_ns"], clock["skew_end_ns"], clock["uncertain_ns"], clock["drift_ppm"],
    )  # fmt: skip
    if start is None or uncertain is None:
        return "not compared: the guest did not answer"
    text = f"{_ms(start)} against the host's at its begin"
    if end is None or drift is None:
        return f"{text}; not compared at its end"
    return f"{text}, {_ms(end)} at its end (each to {uncertain * 1e-6:.2f} ms): a drift of {drift:+,.1f} ppm"


def _ms(ns: int) -> str:
    return f"{ns * 1e-6:+,.2f} ms"


def worth_words(guest: GuestOfRun) -> str:
    """What its times are worth."""
    accelerator = guest.get("accelerator")  # verdicts of before there were any have none
    if accelerator == "kvm":
        return f"the run was in virtual machines on this host ({kernel_words(guest)}): times are those of a guest"
    if accelerator is not None:
        return (
            f"emulated: mechanism only. The run was on kernels of an emulated machine ({kernel_words(guest)}); counts "
            "and orders hold, times are those of the emulator"
        )
    return (
        f"mechanism, not speed: the run was on a guest kernel ({kernel_words(guest)}); counts and orders hold, times "
        "are not those of the host"
    )


def _warns(verdict: Json) -> list[str]:
    guest = guest_of(verdict)
    if guest is None:
        return []
    said = [worth_words(guest)]
    if guest["drifts"]:
        said.append("the guest's clock and the host's moved apart during the run: its times are wrong by as much")
    return said


SENTENCES = Sentences("guest", warns=_warns, section=SECTION)
