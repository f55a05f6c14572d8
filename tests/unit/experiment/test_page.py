"""What an experiment asks of its report is checked as everything else in its file."""

import pytest

from plimsoll.experiment import ExperimentError, load
from plimsoll.experiment.reading.source import shipped

NAMED = {
    "buffer-cache": ("wpi-2002-caches", []),
    "writeback": ("wpi-2002-writeback", []),
    "pgbench-clients": ("citi-2001", ["clients"]),
    "sync-parts": ("citi-2001", []),
    "pgbench-storage": ("citi-2001", ["storage"]),
    "nfs-options": ("citi-2001", []),
    "nfs-queries": ("citi-2001", []),
    "decision-support": ("osdl-2003", []),
    "dss-repeat": ("osdl-2003", []),
    "dss-soak": ("osdl-2003", []),
    "cpu-scaling": ("ibm-2004-cpus", ["scaling"]),
    "memory-scaling": ("ibm-2004-memory", ["scaling"]),
    "raw-storage": ("citi-2001", []),
    "raw-storage-database": ("citi-2001", ["storage"]),
    "sequential-io": ("ibm-2004-memory", []),
    "file-serving": ("ibm-2004-cpus", ["scaling"]),
}


def test_the_experiments_of_studies_name_them() -> None:
    found = {path.parent.name: load(str(path)).experiment for path in shipped()}
    assert {name: (one.study, one.sections) for name, one in found.items() if one.study} == NAMED


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("study=dbt-3", "study: 'dbt-3' is not allowed; allowed: 'wpi-2002-caches', "),
        ('sections=["caches"]', "allowed: 'clients', 'scaling' or 'storage'"),
        ('sections=["scaling", "scaling"]', "the section scaling is named twice; allowed: each once"),
    ],
)
def test_what_is_wrong_is_said(value: str, said: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        load("a-a", sets=[value])
    assert said in str(caught.value), caught.value
