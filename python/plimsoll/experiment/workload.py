"""Table [workload]: the workloads there are, told apart by `name`; a new one is a file of workloads/ and its name."""

from __future__ import annotations

from typing import Annotated, Final, get_args

from pydantic import Discriminator

from plimsoll.experiment.workloads.bank import Bank
from plimsoll.experiment.workloads.base import AnyWorkload, Load
from plimsoll.experiment.workloads.decision_support import DecisionSupport
from plimsoll.experiment.workloads.file_serving import FileServing
from plimsoll.experiment.workloads.files import FileMix
from plimsoll.experiment.workloads.keys import Zipf
from plimsoll.experiment.workloads.order_entry import OrderEntry
from plimsoll.experiment.workloads.raw_storage import RawStorage
from plimsoll.experiment.workloads.script import Script, ScriptFile
from plimsoll.experiment.workloads.sequential_io import SequentialIo
from plimsoll.experiment.workloads.web import Web
from plimsoll.experiment.workloads.wpi_orders import WpiOrders

__all__ = [
    "BY_NAME",
    "OWNERS",
    "Bank",
    "DecisionSupport",
    "FileMix",
    "FileServing",
    "Load",
    "OrderEntry",
    "RawStorage",
    "Script",
    "ScriptFile",
    "SequentialIo",
    "Web",
    "Workload",
    "WpiOrders",
    "Zipf",
]

Workload = Annotated[
    WpiOrders | Bank | OrderEntry | Script | DecisionSupport | FileMix | RawStorage | SequentialIo | FileServing | Web,
    Discriminator("name"),
]
# All of them, by name.
BY_NAME: Final[dict[str, type[AnyWorkload]]] = {
    get_args(kind.model_fields["name"].annotation)[0]: kind for kind in get_args(get_args(Workload)[0])
}
# The workloads that have metrics of their own, by these.
OWNERS: Final[dict[str, list[str]]] = {}
for _name, _kind in BY_NAME.items():
    for _metric in _kind.own_metrics:
        OWNERS.setdefault(_metric, []).append(_name)
