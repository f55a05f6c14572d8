"""What the verdict of a run on a guest kernel says that it cannot say, in words and on the page."""

from typing import Any

import pytest

from plimsoll.analysis.guest import part
from plimsoll.words.guest import sentences

TOLD: dict[str, Any] = {
    "kernel": "user-mode-linux",
    "version": "6.1.176",
    "memory_bytes": 768 << 20,
    "cpus": 1,
    "hz": 100,
    "probes_in_the_kernel": False,
    "boots": [
        {
            "start": {"host_epoch_ns": 10**9, "skew_ns": -115_000_000, "round_trip_ns": 130_000},
            "end": {"host_epoch_ns": 11 * 10**9, "skew_ns": -115_004_000, "round_trip_ns": 140_000},
        }
    ],
}


def test_all_that_a_guest_of_user_mode_linux_cannot_say() -> None:
    found = part.guest_of(TOLD)
    assert found["cannot"] == ["speed", "cpus", "tick", "probes", "images", "sweeps"]
    assert found["tick_ms"] == 10
    words = sentences.cannot_words(found)
    assert len(words) == 6 and "10 ms" in words[2] and "no breakdown" in words[3]


def test_a_kernel_that_has_more_can_say_more() -> None:
    found = part.guest_of(TOLD | {"cpus": 2, "hz": None, "probes_in_the_kernel": True})
    assert found["cannot"] == ["speed", "images", "sweeps"]
    assert len(sentences.cannot_words(found)) == 3


def test_guests_of_qemu_are_worth_what_runs_them() -> None:
    of_qemu = TOLD | {"kernel": "QEMU", "cpus": 2, "hz": 250, "probes_in_the_kernel": True}
    emulated, real = (part.guest_of(of_qemu | {"accelerator": name}) for name in ("tcg", "kvm"))
    assert emulated["cannot"] == ["speed", "images"] and real["cannot"] == ["images"]
    assert emulated["tick_ms"] is None, "its timers are finer"
    assert sentences.cannot_words(emulated)[0] == "How fast the host would be: every instruction is emulated"
    assert "images on a file system" in sentences.cannot_words(real)[0]
    (said,) = sentences.SENTENCES.warns({"guest": emulated})
    assert said.startswith("emulated: mechanism only. The run was on kernels of an emulated machine (QEMU 6.1.176)")
    (said,) = sentences.SENTENCES.warns({"guest": real})
    assert "times are those of a guest" in said and "mechanism" not in said


def test_parameters_of_its_boot_are_kept_and_a_record_of_before_them_has_none() -> None:
    assert part.guest_of(TOLD | {"parameters": "nosmt"})["parameters"] == "nosmt"
    assert part.guest_of(TOLD)["parameters"] == ""


def test_the_clock_of_a_boot() -> None:
    (clock,) = part.guest_of(TOLD)["boots"]
    assert clock["drift_ppm"] == pytest.approx(-0.4) and clock["uncertain_ns"] == 70_000
    assert sentences.clock_words(clock) == (
        "-115.00 ms against the host's at its begin, -115.00 ms at its end (each to 0.07 ms): a drift of -0.4 ppm"
    )
    cut = part.clock_of({"start": TOLD["boots"][0]["start"], "end": None})
    assert cut["drift_ppm"] is None and sentences.clock_words(cut).endswith("not compared at its end")
    assert sentences.clock_words(part.clock_of({})) == "not compared: the guest did not answer"


def test_it_is_said_first_that_times_are_not_the_hosts_and_whether_clocks_drift() -> None:
    assert sentences.SENTENCES.warns({"guest": None}) == [] == sentences.SENTENCES.warns({})
    (said,) = sentences.SENTENCES.warns({"guest": part.guest_of(TOLD)})
    assert said.startswith("mechanism, not speed: the run was on a guest kernel (user-mode-linux 6.1.176)")
    drifting = TOLD | {
        "boots": [TOLD["boots"][0] | {"end": {"host_epoch_ns": 2 * 10**9, "skew_ns": 0, "round_trip_ns": 1}}]
    }
    assert "moved apart" in sentences.SENTENCES.warns({"guest": part.guest_of(drifting)})[1]
