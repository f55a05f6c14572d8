"""The machine, the server's settings, the load generator's health, and everything that is known of the run."""

from typing import Any

from plimsoll.record import Run
from plimsoll.record.judged_trial import Placements
from plimsoll.record.verdict import GeneratorOfRun
from plimsoll.report.drawing import tables
from plimsoll.report.drawing.machine import machine_rows
from plimsoll.report.drawing.tables import NONE, number, percent
from plimsoll.report.section import Page, Section
from plimsoll.words.verdict import generator_words

Json = dict[str, Any]


def generator_rows(verdict: Json) -> list[tuple[str, str]]:
    """The generator's health, the worst of the trials that entered."""
    generator: GeneratorOfRun = verdict["generator"]
    shared = {True: "yes", False: "no", None: NONE}[generator["shares_cores"]]
    rows = [
        ("share of the core time it may use", percent(generator["core_share_max"])),
        ("share of the CPU time its threads could have", percent(generator["busy_share_max"])),
        ("mean lag as a share of the mean latency", percent(generator["lag_share_max"])),
        ("shares cores with the server", shared),
        ("the same CPUs in every treatment", _placed(generator.get("placement"))),
    ]
    if generator.get("own_lag_share_max") is not None:
        rows.insert(
            3, ("mean lag with a connection free, as a share of the latency", percent(generator["own_lag_share_max"]))
        )
    if generator.get("connections_busy_share_max") is not None:
        rows.append(("connections busy", percent(generator["connections_busy_share_max"])))
    if generator["shares_cores"]:
        rows += [
            ("without it the server could be faster by at most", f"{number(generator['explains_ratio_max'], '.2f')} ×"),
            (
                "what its share alone could explain between trials",
                f"{number(generator['explains_between_trials_ratio'], '.2f')} ×",
            ),
        ]
    return rows


def _placed(placement: Placements | None) -> str:
    if placement and placement["varied"]:
        return "varied by the experiment"
    return {True: "yes", False: "no: see what is excluded", None: NONE}[placement["equal"] if placement else None]


def command_words(run: Run) -> str:
    """The command that made the run; empty where it is not known."""
    command = run.data.get("command")
    return " ".join(str(word) for word in command) if isinstance(command, list) else ""


def _context(page: Page) -> Json:
    return {
        "durability": tables.durability(page.run),
        "settings": tables.server_settings(page.run),
        "machine": machine_rows(page.run),
        "fingerprint": tables.flat(page.run.fingerprint),
        "experiment": tables.flat(page.run.experiment),
        "identity": page.verdict["identity"],
        "generator_rows": generator_rows(page.verdict),
        "generator_rule": page.verdict["generator"]["rule"],
        "command": command_words(page.run),
    }


SECTION = Section(
    key="machine",
    title="Machine and settings",
    template="every_run/machine.html.j2",
    context=_context,
    evidence=lambda page: [f"{generator_words(page.verdict)}."],
)
