"""Tables for the terminal. Takes values and prints them; computes nothing but widths."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from plimsoll.cli.console import console
from plimsoll.experiment import Experiment, Plan, size
from plimsoll.quantities import elapsed

if TYPE_CHECKING:
    from plimsoll.environment.doctor import Check
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
    table = plain_table("trial", "block", "treatment", "")
    for trial in planned.trials:
        again = "again, for A/A" if trial.duplicate else ""
        table.add_row(str(trial.number), str(trial.block), Text(trial.treatment.label), again)
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
    """How the servers of a block take turns, and when that ends."""
    design = planned.experiment.design
    servers = sum(trial.block == 1 for trial in planned.trials)
    text = (
        f"In windows: the {servers} servers of a block are up at once and take turns of {design.window_seconds:g} s, "
        f"{design.rounds} each a block, while the others are frozen."
    )
    if design.stop == "decided":
        text += " The run ends after the block that decides the question, or after the last."
    if design.minutes is not None:
        text += f" No block after the second is begun that would end after more than {design.minutes:g} minutes."
    return text


def told(planned: Plan, stored: StoredEquals | None) -> str:
    """What difference a plan of windows can tell here."""
    from plimsoll.analysis.windows.budget import Arrangement
    from plimsoll.words.windows import budget_words

    design, arms = planned.experiment.design, sum(trial.block == 1 for trial in planned.trials)
    counted = design.window_seconds - design.lead_in_seconds
    levels, stops = len(planned.treatments), design.stop == "decided"
    return budget_words(stored, Arrangement(levels, arms, design.blocks, design.rounds, counted, stops))


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
        out.print(f"{name}: in use by a series of throughput tests; `run --resume` of its record continues it.")
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
