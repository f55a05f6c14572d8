"""Table [workload]: the workloads there are, told apart by `name`; a new one is a file of workloads/ and its name."""

from __future__ import annotations

from typing import Annotated

from pydantic import Discriminator

from plimsoll.experiment.decision_support import DecisionSupport
from plimsoll.experiment.workloads.bank import Bank
from plimsoll.experiment.workloads.base import Load
from plimsoll.experiment.workloads.keys import Zipf
from plimsoll.experiment.workloads.order_entry import OrderEntry
from plimsoll.experiment.workloads.script import Script, ScriptFile
from plimsoll.experiment.workloads.wpi_orders import WpiOrders

__all__ = ["Bank", "DecisionSupport", "Load", "OrderEntry", "Script", "ScriptFile", "Workload", "WpiOrders", "Zipf"]

Workload = Annotated[WpiOrders | Bank | OrderEntry | Script | DecisionSupport, Discriminator("name")]
