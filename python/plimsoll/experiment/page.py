"""What an experiment asks of its report: the study that it repeats, and the sections that are its own.

The fact that constrains it: a section that fits one study's design would fit others by accident, so that an experiment
names it (report/sections.py has all of them; the others appear by what the record holds).
"""

from typing import Literal

# The studies whose findings stand beside today's figures (report/original_studies.py).
Study = Literal["wpi-2002-caches", "wpi-2002-writeback", "citi-2001", "osdl-2003", "ibm-2004-cpus", "ibm-2004-memory"]
SectionKey = Literal["clients", "scaling", "storage"]


def each_once(sections: list[SectionKey]) -> None:
    """Raises ValueError where a section is named twice."""
    for key in sections:
        if sections.count(key) > 1:
            raise ValueError(f"the section {key} is named twice; allowed: each once")
