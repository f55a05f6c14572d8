"""An experiment on a guest kernel: what it may ask for, and what is refused with file, line, key and reason."""

from pathlib import Path

import pytest

from plimsoll.experiment import ExperimentError, Source, load
from plimsoll.experiment.reading.source import reload
from plimsoll.run.sizes import data_bytes, environment_in_bytes, memory_bytes

FILE = """format = 1
name = "mine"
title = "A question"

[environment]
kernel = "guest"

[environment.guest]
memory = "768 MiB"

[workload]
name = "wpi_orders"
size = "0.125 x memory"

[measure]
transactions = 100

[[factors]]
path = "target.settings.shared_buffers"
levels = ["4 MiB", "16 MiB"]
"""
MEMORY_FACTOR = '[[factors]]\npath = "environment.memory"\nlevels = ["96 MiB", "128 MiB"]\n'
NAMED_FACTOR = (
    '[[factors]]\nname = "limits"\n[[factors.levels]]\nlabel = "small"\n'
    'set = { "environment.memory" = "96 MiB", "environment.swap" = 0 }\n'
)


def loaded(folder: Path, text: str, sets: list[str] | None = None) -> Source:
    path = folder / "experiment.toml"
    path.write_text(text)
    return load(str(path), sets=sets)


def test_sizes_are_relative_to_the_guests_memory(tmp_path: Path) -> None:
    source = loaded(tmp_path, FILE)
    settings = source.treatments[0].settings
    machine = settings.environment.guest_machine
    assert machine is not None and machine.memory_bytes == memory_bytes(settings) == 768 << 20
    assert data_bytes(settings) == pytest.approx(96 << 20, rel=0.05)
    assert environment_in_bytes(settings).guest_machine == machine.model_copy(update={"memory": 768 << 20})
    limited = loaded(tmp_path, FILE, ["environment.memory=0.5 x memory"]).treatments[0].settings
    assert memory_bytes(limited) == environment_in_bytes(limited).memory == 384 << 20


def test_a_guest_has_a_default_and_is_the_same_when_read_from_a_record(tmp_path: Path) -> None:
    source = loaded(tmp_path, FILE.replace('[environment.guest]\nmemory = "768 MiB"\n', ""))
    again = reload(source.experiment.model_dump(mode="json"), source.path, quick=False)
    for one in (source, again):
        machine = one.experiment.environment.guest_machine
        assert machine is not None and machine.memory_bytes == 1 << 30
    on_host = loaded(
        tmp_path, FILE.replace('[environment.guest]\nmemory = "768 MiB"\n', "").replace('"guest"', '"host"')
    )
    assert on_host.experiment.environment.guest_machine is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('kernel = "guest"', 'kernel = "host"', ["environment.guest", 'kernel is "host"', 'kernel = "guest"']),
        ('kernel = "guest"', 'kernel = "qemu"', ["environment.kernel", "'qemu' is no kernel", '"host", "guest"']),
        ('"768 MiB"', '"0.5 x memory"', ["environment.guest.memory", "relative to memory", "absolute", "256 MiB"]),
        ('"768 MiB"', '"64 MiB"', ["environment.guest.memory", "too little", "at least 256 MiB"]),
        ('memory = "768 MiB"', "cpus = 2", ["environment.guest.cpus", "there is no such key"]),
        ('memory = "768 MiB"', "minutes = 0", ["environment.guest.minutes", "greater than 0"]),
        ("[[factors]]", f"{MEMORY_FACTOR}[[factors]]", ["factors", "environment.memory cannot be varied", "not speed"]),
        ("[[factors]]", f"{NAMED_FACTOR}[[factors]]", ["factors", "environment.memory cannot be varied"]),
        ('"target.settings.shared_buffers"\nlevels = ["4 MiB", "16 MiB"]', '"environment.target_cpus"\nlevels = ["0"]',
         ["environment.target_cpus cannot be varied", "one CPU", 'environment.kernel = "host"']),
        ('"target.settings.shared_buffers"\nlevels = ["4 MiB", "16 MiB"]', '"environment.load_cpus"\nlevels = ["0"]',
         ["environment.load_cpus cannot be varied", "one CPU"]),
        ('"target.settings.shared_buffers"\nlevels = ["4 MiB", "16 MiB"]', '"environment.kernel"\nlevels = ["host"]',
         ["environment.kernel cannot be varied to 'host'", "names of environment.kernels (none yet)"]),
        ('"target.settings.shared_buffers"\nlevels = ["4 MiB", "16 MiB"]', '"environment.guest.memory"\nlevels = [1]',
         ["environment.guest.memory", "a run is on one kernel"]),
        ('kernel = "guest"', 'kernel = "guest"\ntarget_cpus = "0-1"', ['target_cpus is "0-1"', "one CPU", '"all"']),
        ("[measure]", '[target.files]\nwal = "/mnt/log"\n[measure]', ["/mnt/log", "a folder of the host"]),
        ("[measure]", '[target]\ndsn = "postgresql:///x"\n[measure]', ["target.dsn", "a kernel of its own"]),
    ],
)  # fmt: skip
def test_what_a_guest_cannot_give_is_refused(tmp_path: Path, old: str, new: str, said: list[str]) -> None:
    text = FILE.replace(old, new, 1)
    assert text != FILE
    if "dsn" in new:  # whose sizes and settings are its own
        text = text.replace("[[factors]]\n" + FILE.partition("[[factors]]\n")[2], "").replace(
            "0.125 x memory", "64 MiB"
        )
    with pytest.raises(ExperimentError) as refused:
        loaded(tmp_path, text)
    whole = "\n".join(str(problem) for problem in refused.value.problems)
    assert all(part in whole for part in [*said, f"{tmp_path}/experiment.toml:"]), whole


def test_a_level_that_only_one_treatment_has_is_refused_as_well(tmp_path: Path) -> None:
    factor = '[[factors]]\npath = "target.files.wal"\nlevels = ["/mnt/one", "/mnt/two"]\n'
    with pytest.raises(ExperimentError, match="/mnt/one, a folder of the host"):
        loaded(tmp_path, FILE.partition("[[factors]]")[0] + factor)


def test_parameters_of_its_boot_are_as_on_a_boot_loaders_line(tmp_path: Path) -> None:
    source = loaded(tmp_path, FILE, ["environment.guest.parameters= transparent_hugepage=never   nosmt"])
    machine = source.experiment.environment.guest_machine
    assert machine is not None and machine.parameters == "transparent_hugepage=never nosmt"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("mem=4G", "mem is what the guest itself is booted with"),
        ("quiet console=ttyS0", "console is what the guest itself is booted with"),
        ("init=/bin/sh", "init is what the guest itself is booted with"),
        ("quiet -- single", "'--' is no parameter of a kernel"),
        (" ".join(f"word{number}" for number in range(17)), "17 parameters; allowed: at most 16"),
    ],
)
def test_parameters_that_would_boot_another_guest_are_refused(tmp_path: Path, given: str, said: str) -> None:
    with pytest.raises(ExperimentError, match=said):
        loaded(tmp_path, FILE, [f"environment.guest.parameters={given}"])


def test_parameters_cannot_be_a_factor(tmp_path: Path) -> None:
    factor = '[[factors]]\npath = "environment.guest.parameters"\nlevels = ["quiet", "nosmt"]\n'
    with pytest.raises(ExperimentError, match="a run is on one kernel"):
        loaded(tmp_path, FILE + factor)
