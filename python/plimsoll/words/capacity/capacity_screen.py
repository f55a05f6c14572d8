"""What somebody reads of a search for the load line who has a minute. Says nothing that capacity.json does not hold."""

from collections.abc import Callable

from plimsoll.analysis.capacity.document import Capacity
from plimsoll.analysis.next_steps.load_line import minutes_longer, steps
from plimsoll.quantities import rate
from plimsoll.words.capacity.capacity import earlier_lines, evidence_lines, headline, unit
from plimsoll.words.said import FirstScreen, Said

WHY_MAX = 3
LINE, TRIALS, CAVEATS, EARLIER = "line", "trials", "caveats", "earlier"  # sections of the page


def capacity_screen(verdict: Capacity) -> FirstScreen:
    """The five answers."""
    line = verdict["line"]
    evidence = [Said(text, TRIALS) for text in evidence_lines(verdict)]
    sure = []
    if line["status"] == "found":
        sure = [Said(f"{line['trials_near']} trials near the line; the interval is 95 %", LINE)]
    return FirstScreen(
        [Said(headline(verdict), LINE)],
        [*sure, *(Said(text, EARLIER) for text in earlier_lines(verdict)[:1])],
        evidence[:WHY_MAX],
        [Said(_WORDS[kind](verdict)) for kind in steps(verdict)],
        wrong(verdict),
    )


def wrong(verdict: Capacity) -> list[Said]:
    """Checks of the data that do not hold, and the first of the caveats with their number."""
    broken = [check["name"] for check in verdict["checks"] or [] if not check["ok"]]
    found = [Said(f"checks of the data do not hold: {', '.join(broken)}", "machine")] if broken else []
    caveats = verdict["caveats"]
    if caveats:
        more = f" (and {len(caveats) - 1} more)" if len(caveats) > 1 else ""
        found.append(Said(f"{caveats[0]}{more}", CAVEATS))
    return found


def _keep_below(verdict: Capacity) -> str:
    low = verdict["line"]["low"] or 0.0
    return f"Plan for at most {rate(low)}{unit(verdict)}, the low end of the interval, and less where a day varies"


def _generator(verdict: Capacity) -> str:
    if verdict.get("clients_called") == "sessions":  # it is itself what is measured, and has the target's CPUs
        return "Give the load more CPUs (environment.target_cpus), or fewer sessions (--clients), and search again"
    return "Give the load generator CPUs of its own (environment.load_cpus), or fewer connections, and search again"


def _longer(verdict: Capacity) -> str:
    return f"Search longer for a sharper answer: the same command with --minutes {minutes_longer(verdict):g}"


def _look(_verdict: Capacity) -> str:
    return "See what takes the time: ./plimsoll breakdown beside the load; or ask for a longer latency with --slo"


_WORDS: dict[str, Callable[[Capacity], str]] = {
    "keep_below": _keep_below,
    "generator": _generator,
    "longer": _longer,
    "look": _look,
}
