"""Kernels as levels: what an experiment may name, and that each block boots each of them anew, in random order."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from plimsoll.experiment import ExperimentError, Source, load, plan_trials
from plimsoll.experiment.design import boots_of
from plimsoll.experiment.reading.source import reload

FILE = """format = 1
name = "mine"
title = "A question"

[environment]
kernels.old = { release = "6.1.0-56-cloud-amd64" }
kernels.new = { release = "6.12.113+deb12-cloud-amd64", folder = "/opt/new" }
boot = { by = "qemu", cpus = 2 }

[workload]
name = "bank"
scale = 1

[measure]
seconds = 1

[design]
blocks = 4

[[factors]]
path = "environment.kernel"
levels = ["old", "new"]

[[factors]]
path = "workload.clients"
levels = [1, 2, 3]
"""


def loaded(folder: Path, text: str, sets: list[str] | None = None) -> Source:
    path = folder / "experiment.toml"
    path.write_text(text)
    return load(str(path), sets=sets)


def test_each_treatment_has_its_kernel_and_reads_the_same_from_a_record(tmp_path: Path) -> None:
    source = loaded(tmp_path, FILE)
    again = reload(source.experiment.model_dump(mode="json"), source.path, quick=False)
    for one in (source, again):
        assert one.experiment.kernel_kind == "qemu"
        assert one.experiment.guest_machine is not None and one.experiment.guest_machine.memory_bytes == 1 << 30
        kernels = [treatment.settings.environment.named_kernel for treatment in one.treatments]
        assert [kernel.release[:4] for kernel in kernels if kernel] == ["6.1."] * 3 + ["6.12"] * 3
    machine = loaded(tmp_path, FILE, ['environment.boot.by="kexec"']).experiment
    assert machine.kernel_kind == "kexec" and machine.guest_machine is None


def test_a_block_boots_each_kernel_once_and_has_its_trials_together(tmp_path: Path) -> None:
    source = loaded(tmp_path, FILE)
    orders = set()
    for seed in range(20):
        plan = plan_trials(source.experiment, source.treatments, seed)
        boots = boots_of(plan.trials)
        assert [len(boot) for boot in boots] == [3] * 8, "three clients each, and no boot over two blocks"
        for boot in boots:
            assert len({(one.block, one.treatment.settings.environment.kernel) for one in boot}) == 1
            assert {one.treatment.settings.workload.clients for one in boot} == {1, 2, 3}
        firsts = tuple(boot[0].treatment.settings.environment.kernel for boot in boots)
        orders.add(firsts)
        assert plan == plan_trials(source.experiment, source.treatments, seed)
        assert firsts[4:6] == firsts[1::-1], "the second half has the orders of the first half backwards"
    assert len(orders) == 4, "two blocks of two orders each"


def test_a_duplicate_has_a_boot_of_its_own(tmp_path: Path) -> None:
    source = loaded(tmp_path, FILE.replace("blocks = 4", "blocks = 4\nduplicate = true"))
    plan = plan_trials(source.experiment, source.treatments, 5)
    boots = boots_of(plan.trials)
    assert sorted(len(boot) for boot in boots) == [1] * 4 + [3] * 8
    assert all(len({one.duplicate for one in boot}) == 1 for boot in boots)


def test_without_named_kernels_the_order_is_what_it_was(tmp_path: Path) -> None:
    text = FILE.replace('[[factors]]\npath = "environment.kernel"\nlevels = ["old", "new"]\n', "")
    source = loaded(tmp_path, text)
    assert source.experiment.kernel_kind == "host"
    plan = plan_trials(source.experiment, source.treatments, 1)
    draw = random.Random(1)
    draw.randrange(3)  # whose turn the duplicate is
    assert [trial.treatment.id for trial in plan.trials][:3] == [f"t{place + 1}" for place in draw.sample(range(3), 3)]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('levels = ["old", "new"]', 'levels = ["old", "host"]', "cannot be varied to 'host'"),
        ('levels = ["old", "new"]', 'levels = ["old", "guest"]', "cannot be varied to 'guest'"),
        ('levels = ["old", "new"]', 'levels = ["old", "newer"]', "cannot be varied to 'newer'"),
        ('"6.12.113+deb12-cloud-amd64", folder = "/opt/new"', '"6.1.0-56-cloud-amd64"', "are one, by release"),
        ('"6.1.0-56-cloud-amd64" }', '"6.1.0-56-cloud-amd64", parameters = "root=/dev/vda" }', "root is what it is"),
        ('"6.1.0-56-cloud-amd64" }', '"6.1.0-56-cloud-amd64", parameters = "a\\"b" }', "is no parameter of a kernel"),
        ('"6.1.0-56-cloud-amd64" }', '"6.1.0-56-cloud-amd64", parameters = "a single" }', "boots it without services"),
        ('"6.1.0-56-cloud-amd64" }',
         '"6.1.0-56-cloud-amd64", parameters = "systemd.unit=rescue.target" }', "boots it without services"),
        ('"6.1.0-56-cloud-amd64" }', '"../../x" }', "environment.kernels.old.release"),
        ("kernels.old =", "kernels.OLD =", "a name for a kernel"),
        ('by = "qemu"', 'by = "xen"', "environment.boot.by"),
        ("cpus = 2", "cpus = 0", "environment.boot.cpus"),
        ("[workload]", '[target]\ndsn = "postgresql:///x"\n[workload]', "a kernel of its own"),
        ("boot =", 'target_cpus = "2"\nboot =', "2 CPUs (environment.boot.cpus)"),
        ('path = "workload.clients"\nlevels = [1, 2, 3]', 'path = "environment.boot.by"\nlevels = ["qemu"]',
         "name them all, and vary environment.kernel"),
        ('path = "workload.clients"\nlevels = [1, 2, 3]',
         'path = "environment.kernels.old.parameters"\nlevels = ["quiet"]', "name them all"),
    ],
)  # fmt: skip
def test_refused_with_the_reason(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = FILE.replace(old, new, 1)
    assert text != FILE
    with pytest.raises(ExperimentError) as refused:
        loaded(tmp_path, text)
    assert said in "\n".join(str(problem) for problem in refused.value.problems)


def test_on_the_machine_itself_what_outlives_a_reboot_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="which a reboot of this machine need not bring"):
        loaded(
            tmp_path, FILE.replace('"qemu"', '"kexec"').replace("[workload]", '[target]\ndsn = "postgresql:///x"\n[workload]')
        )  # fmt: skip


def test_one_kernel_with_two_sets_of_parameters_are_two_levels(tmp_path: Path) -> None:
    text = FILE.replace(
        'kernels.new = { release = "6.12.113+deb12-cloud-amd64", folder = "/opt/new" }',
        'kernels.new = { release = "6.1.0-56-cloud-amd64", parameters = "mitigations=off   nosmt" }',
    )
    kernels = loaded(tmp_path, text).experiment.environment.kernels
    assert [kernels[name].parameters for name in ("old", "new")] == ["", "mitigations=off nosmt"]
