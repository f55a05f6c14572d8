"""Tables for the terminal. Takes values and prints them; computes nothing but widths."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from plimsoll.cli.console import console
from plimsoll.experiment import Experiment, Plan, size
from plimsoll.experiment.design import blocks_of
from plimsoll.quantities import elapsed

if TYPE_CHECKING:
    from plimsoll.environment.doctor import Check
    from plimsoll.experiment.groups import Groups
    from plimsoll.record.verdict import StoredEquals
    from plimsoll.run.planning.needs import Needs
    from plimsoll.target.dataset import Dataset


def plain_table(*columns: str) -> Table:
    """A table without lines, whose long cells go on in the next line."""
    table = Table(box=None, pad_edge=False, show_header=bool(any(columns)), header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def experiments(shipped: Iterable[Experiment]) -> None:
    """Names with their questions."""
    table = plain_table("experiment", "question", "from")
    for experiment in shipped:
        table.add_row(experiment.name, experiment.title, experiment.source)
    console().print(table)


def plan(planned: Plan, needs: Needs, stored: StoredEquals | None = None) -> None:
    """Trials in order, needs, obstacles; `stored` is the newest A/A of this machine."""
    out = console()
    out.print(f"{planned.experiment.title}\n")
    table = plain_table("trial", "block", *(["group"] if planned.groups else []), "treatment", "")
    for trial in planned.trials:
        again = "again, for A/A" if trial.duplicate else ""
        group = [] if trial.group is None else [str(trial.group)]
        table.add_row(str(trial.number), str(trial.block), *group, Text(trial.treatment.label), again)
    out.print(table)
    if planned.experiment.design.kind == "windows":
        out.print(f"\n{turns(planned)}")
        if difference := told(planned, stored):
            out.print(difference)
    out.print(f"\nseed {planned.seed} (--seed {planned.seed} plans the same order)")
    building = f", {elapsed(needs.build_seconds)} of it to build data sets" if needs.build_seconds else ""
    out.print(f"time    about {elapsed(needs.seconds)}{building}")
    out.print(
        f"memory  {size.show(needs.memory_bytes)}" if needs.memory_bytes else "memory  that of the existing server"
    )
    out.print(f"disk    {size.show(needs.disk_bytes)}" if needs.disk_bytes else "disk    that of the existing server")
    for remark in needs.remarks:
        out.print(f"note    {remark}")
    if needs.impossible:
        out.print("\nThis cannot be run here:")
        for reason in needs.impossible:
            out.print(f"  - {reason}")


def turns(planned: Plan) -> str:
    """How the servers of a block take turns, in which groups, and when that ends."""
    design, groups = planned.experiment.design, planned.groups
    servers = max(map(len, blocks_of(planned.trials)))
    most = f"up to {servers}" if groups else f"the {servers}"
    text = (
        f"In windows: {most} servers of a block are up at once and take turns of {design.window_seconds:g} s, "
        f"{design.rounds} each a block, while the others are frozen."
    )
    if groups:
        text += f" {in_groups_words(planned, groups)}"
    if design.stop == "decided":
        after = "replicate" if groups else "block"
        text += f" The run ends after the {after} that decides the question, or after the last."
    if design.minutes is not None:
        which = "replicate" if groups else "block"
        text += f" No {which} after the second is begun that would end after more than {design.minutes:g} minutes."
    return text


def in_groups_words(planned: Plan, groups: Groups) -> str:
    """Which treatments are up together, and what they share."""
    labels = {treatment.id: treatment.label for treatment in planned.treatments}
    count, replicates = len(groups.members), planned.experiment.design.blocks
    text = (
        f"The servers of all {len(labels)} treatments do not fit at once, so each block has one of {count} groups, "
        f"which share {labels[groups.reference]}:"
    )
    for place, members in enumerate(groups.members, start=1):
        others = ", ".join(labels[name] for name in members if name != groups.reference)
        text += f"\n  group {place}: {others}"
    return (
        f"{text}\nAll groups once, in random order, are a replicate; there are {replicates}. Levels of different "
        "groups are compared through the one that they share, with the errors of both comparisons."
    )


def told(planned: Plan, stored: StoredEquals | None) -> str:
    """What difference a plan of windows can tell here."""
    from plimsoll.analysis.windows.budget import Arrangement
    from plimsoll.words.windows import budget_words

    design = planned.experiment.design
    groups = len(planned.groups.members) if planned.groups else 1
    arms = sum(trial.block <= groups for trial in planned.trials)  # of a replicate
    counted = design.window_seconds - design.lead_in_seconds
    levels, stops = len(planned.treatments), design.stop == "decided"
    return budget_words(stored, Arrangement(levels, arms, design.blocks, design.rounds, counted, stops, groups))


def doctor(checks: Iterable[Check]) -> None:
    """What is there, what is not, and the remedy."""
    table = plain_table("", "", "found")
    for check in checks:
        mark = {True: "ok", False: "missing", None: "note"}[check.ok]
        style = {True: "green", False: "red", None: "yellow"}[check.ok]
        text = Text(str(check.found))
        if check.remedy and check.ok is not True:
            text.append(f"\nwhat to do: {check.remedy}", style="dim")
        table.add_row(Text(mark, style=style), check.name, text)
    console().print(table)


def datasets(folder: Path, kept: list[Dataset], series: list[str]) -> None:
    """The kept data sets, and the databases of `series` that were stopped or killed."""
    out = console()
    for name in series:
        out.print(
            f"{name}: in use by a series of throughput tests or a soak; `run --resume` of its record continues it."
        )
    if not kept:
        out.print(f"No data set is kept in {folder}.")
        return
    table = plain_table("data set", "tables and indexes", "rows", "built in")
    for dataset in kept:
        table.add_row(
            dataset.key, size.show(dataset.bytes), f"{sum(dataset.rows.values()):,}", elapsed(dataset.build_seconds)
        )
    out.print(table)
    out.print(f"\n{folder}; remove one with: ./plimsoll cache remove KEY")
