"""What is said to somebody who has a minute: sentences, each with the section of the page that has its numbers."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Said:
    """A sentence, the key of the section that has its numbers, and a command to be typed; where there are any."""

    text: str
    section: str = ""
    command: str = ""


@dataclass(frozen=True)
class FirstScreen:
    """Five answers: what and by how much, how sure, why, what to do next, what is wrong with the run.

    `answers` has at least one sentence, the most telling first; the others may be empty.
    """

    answers: list[Said]
    sure: list[Said] = field(default_factory=list)
    why: list[Said] = field(default_factory=list)
    next_steps: list[Said] = field(default_factory=list)
    wrong: list[Said] = field(default_factory=list)
