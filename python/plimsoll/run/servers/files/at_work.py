"""A folder at work in a trial: the agent's load on it, and the check of what that has left."""

from __future__ import annotations

import errno
import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from plimsoll.experiment import Experiment
from plimsoll.run import agent
from plimsoll.run.refusals import TrialFailed
from plimsoll.run.servers.private import PrivateAtWork
from plimsoll.run.trial.load_session import LoadSession
from plimsoll.run.trial.log import TrialLog

# What the file system said (full, read-only, not ours to use) ends the trial, and the record is somewhere else.
OF_THE_FILES = (agent.EXIT_BAD_REQUEST, agent.EXIT_UNREACHABLE)
# What the kernel's error asks of whoever owns the place; a trial that has failed is a result, so a new run follows.
REMEDIES = {
    errno.ENOSPC: "free space there, or ask for fewer or smaller files",
    errno.EDQUOT: "raise the quota there, or ask for fewer or smaller files",
    errno.EROFS: "mount it for writing; where the kernel made it read-only dmesg says why",
    errno.EIO: "its device or file server fails: see dmesg, or name another folder",
    errno.ENOENT: "somebody removed or unmounted it during the trial: leave it alone, and run again",
    errno.ESTALE: "the file server no longer knows it (stale handle): mount it again",
}

_OF_PAGES: Final = "free space there where the disk is full, and see dmesg for its device"


@dataclass
class FilesAtWork(PrivateAtWork):
    """The files of one trial."""

    load: LoadSession

    @contextmanager
    def explaining(self, log: TrialLog) -> Iterator[None]:
        with super().explaining(log):
            try:
                yield
            except agent.AgentFailed as error:
                if error.code in OF_THE_FILES:
                    raise TrialFailed(told(str(error), self.data)) from error
                if error.code == -signal.SIGBUS:
                    raise TrialFailed(
                        f"a page of a mapped file in {self.data} could not be had (SIGBUS); {_OF_PAGES}"
                    ) from error
                raise

    def check(self, log: TrialLog) -> None:
        if (said := cut_passes(self.settings, self.load.summaries)) is not None:
            log.caveat(said)
        log.facts["checks"] = self.load.check()


def cut_passes(settings: Experiment, summaries: list[Path]) -> str | None:
    """What is said of passes that the load's time has cut off; None where each client has ended its own."""
    passes = getattr(settings.workload, "passes", 0)
    if not isinstance(passes, int) or not passes or not summaries:
        return None
    summary = json.loads(summaries[-1].read_text())
    if summary.get("ended_by") != "seconds":
        return None
    begun = (summary.get("totals") or {}).get("passes_begun")
    asked = passes * settings.workload.clients
    said = f"measure.seconds ended the load in its passes: {begun} of {asked} were begun"
    return f"{said}; give it more time, or fewer passes"


def told(words: str, folder: Path) -> str:
    """The agent's words with the place, which they may name files within, and with what to do."""
    number = re.search(r"\(os error (\d+)\)", words)
    remedy = None if number is None else REMEDIES.get(int(number[1]))
    where = "" if str(folder) in words else f", in {folder}"
    return f"{words}{where}" + (f"; {remedy}" if remedy else "")
