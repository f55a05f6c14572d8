"""Table [workload]: the workloads there are, told apart by `name`; a new one is a file of workloads/ and its name."""

from __future__ import annotations

from typing import Annotated, Final, get_args

from pydantic import Discriminator

from plimsoll.experiment.decision_support import DecisionSupport
from plimsoll.experiment.workloads.bank import Bank
from plimsoll.experiment.workloads.base import Load
from plimsoll.experiment.workloads.keys import Zipf
from plimsoll.experiment.workloads.order_entry import OrderEntry
from plimsoll.experiment.workloads.script import Script, ScriptFile
from plimsoll.experiment.workloads.wpi_orders import WpiOrders

__all__ = [
    "OWNERS",
    "Bank",
    "DecisionSupport",
    "Load",
    "OrderEntry",
    "Script",
    "ScriptFile",
    "Workload",
    "WpiOrders",
    "Zipf",
]

Workload = Annotated[WpiOrders | Bank | OrderEntry | Script | DecisionSupport, Discriminator("name")]
# The workloads that have metrics of their own, by these.
OWNERS: Final = {
    metric: get_args(kind.model_fields["name"].annotation)[0]
    for kind in (WpiOrders, Bank, OrderEntry, Script, DecisionSupport)
    for metric in kind.own_metrics
}
