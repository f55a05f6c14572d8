"""What is wrong with an experiment file: every fault at once, each with file, line, key and what is allowed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One fault of an experiment file or of a value given on the command line."""

    where: str  # "path/experiment.toml:12" or "--set"
    key: str
    message: str
    allowed: str | None = None

    def __str__(self) -> str:
        text = f"{self.where}: {self.key}: {self.message}"
        return f"{text}; allowed: {self.allowed}" if self.allowed else text


class ExperimentError(Exception):
    """The experiment cannot be read; nothing was started."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems
