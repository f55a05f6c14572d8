"""What the shared flow asks of any workload; nothing there tests a workload's name or class for these."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, NamedTuple

from pydantic import Field

from plimsoll.experiment.schedule import Schedule
from plimsoll.experiment.strict import Fixed, Strict

Json = dict[str, Any]
Weight = Annotated[int, Field(ge=0, le=1000)]
Mode = Literal["prepared", "extended", "simple"]
SCALE_MAX = 100_000
TRANSACTIONS: Final = "transactions"
TESTS: Final = "tests of decision support"
PHASES: Final = "phases over files"
# What a load is on.
TABLES: Final = "tables of a database"
FILES: Final = "files of a folder"
PAGES: Final = "pages of a web server"
ONE_A_RUN = Fixed("each workload has keys of its own, so it has an experiment of its own")


class NotAsked(NamedTuple):
    """Why a verb refuses a workload: the key it is about, what is wrong, what is allowed."""

    key: str
    what: str
    allowed: str


class AnyWorkload(Strict, ABC):
    """A workload as the flow sees it. `memory_bytes`: what sizes relative to memory refer to."""

    if TYPE_CHECKING:  # each declares its own, after the keys that it shares
        name: str

    # Whether the agent knows what must hold of the tables after a trial, and whether it is asked when they are loaded,
    # because some of it holds only then.
    is_checked: ClassVar[bool] = True
    is_checked_as_loaded: ClassVar[bool] = False
    # Whether its statements are the user's, so that the server may refuse every one of them.
    is_users_own: ClassVar[bool] = False
    # Why it wants a server of its own; empty where it does not.
    private_only: ClassVar[str] = ""
    # What it is on: a server has one or the other.
    on: ClassVar[str] = TABLES
    # What its clients are called.
    clients_called: ClassVar[str] = "connections"
    # What is done, in a line of progress.
    unit: ClassVar[str] = "transactions"
    # What a trial of it is made of: a line of the list in run/segments.py.
    made_of: ClassVar[str] = TRANSACTIONS
    # Metrics that it alone has, by which levels may be compared.
    own_metrics: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def request(self, memory_bytes: int) -> Json:
        """What is done: the agent's `workload` object (schema/agent.md); empty where the agent has no part in it."""

    def data_request(self, memory_bytes: int) -> Json | None:
        """What fills the tables: a `workload` object for `populate`; None where the agent fills none."""
        return self.request(memory_bytes)

    def rows_from(self, memory_bytes: int) -> Json | None:
        """What decides the rows of its tables, by which a data set is known again: of what fills them all, or less."""
        return self.data_request(memory_bytes)

    def setup_sql(self) -> str | None:
        """SQL that is run once when the data are made; None where there is none."""
        return None

    def setup_path(self) -> str | None:
        """The file of that SQL, as the user named it."""
        return None

    def pgbench_scale(self) -> int | None:
        """The scale of the tables of pgbench that it needs; None where it needs none of them."""
        return None

    @abstractmethod
    def estimated_bytes(self, memory_bytes: int, *, columnar: bool = False) -> int:
        """The size of its data, as loaded; `columnar`: in a server that keeps columns."""

    def bytes_beside(self) -> int:
        """What else its trials need for a while: a second server, with which answers are compared."""
        return 0

    def written_bytes(self) -> int | None:
        """What a trial may write beside its data, at most; None where that is not known."""
        return None

    def own_seconds(self, load_bytes_per_s: float) -> float | None:
        """How long what it measures takes, about, where it decides that itself; None where [measure] does.

        `load_bytes_per_s`: how fast tables are filled.
        """
        del load_bytes_per_s
        return None

    def how_sent(self) -> Json:
        """What of the way to the server decides whether it takes the statements: keys of the agent's requests."""
        return {}

    def loads_itself(self) -> bool:
        """Whether a trial begins with an empty cluster, because loading it is one of its tests."""
        return False

    def goes_on_after_kills(self) -> bool:
        """Whether a trial is a series that outlives kills."""
        return False

    def rounds_max(self) -> int | None:
        """How many rounds of a soak its data are enough for; None: as many as there is time for."""
        return None

    def asks_for_plans(self) -> bool:
        """Whether the server is asked for the plans of its queries."""
        return False

    def remedy(self, sqlstates: set[str]) -> str:
        """What to do where the server refused every transaction with these SQLSTATEs."""
        del sqlstates
        return "see the server's log; is the schema unchanged, and has this user the privileges to use it?"

    def caveats(self) -> list[str]:
        """What the reader of a plan and of a result has to know."""
        return []

    @abstractmethod
    def subject(self) -> str:
        """What it is at which size, in a few words: what a load line is of."""

    def line_speed(self) -> int | None:
        """Bits a second that each of its connections is held to; None where they take what comes."""
        return None

    def with_connections(self, clients: int, *, has_lines: bool) -> Json:
        """Its table with so many connections and the same data; `has_lines`: each held to its line's speed."""
        del clients, has_lines
        raise NotImplementedError(f"{self.name} has no lines")  # only those with lines are asked

    def no_load_line(self) -> NotAsked | None:
        """Why no load line can be asked of it; None where one can."""
        return None

    def load_request(self, cpus: int) -> Json:
        """How its load speaks: keys of the agent's `load`. `cpus`: how many the load may use."""
        raise NotImplementedError(f"{self.name} has no transactions")  # only those made of them are asked

    # --- what the other tables of the file may say beside it: each raises ValueError with what is allowed -------------

    def judged(self, schedule: Schedule) -> str:
        """The metric that levels are compared by unless an experiment says otherwise."""
        return schedule.judged

    def check_judged(self, judged: str) -> None:
        """Of [design]: whether what it judges by can be had of this workload."""
        del judged

    def check_measure(self, ends_given: int) -> None:
        """Of [measure]: how many keys it has that say when to end."""
        if ends_given != 1:
            raise ValueError("give exactly one of seconds and transactions (or transactions_per_client)")

    def check_warmup(self, until: str, *, prewarm: bool) -> None:
        """Of [warmup]."""
        del until, prewarm

    def check_schedule(self, schedule: Schedule) -> None:
        """Of [schedule]."""
        del schedule

    def check_arrivals(self, *, is_open: bool) -> None:
        """Of [schedule] once more, when all of it is known to be right by itself."""
        del is_open


class Load(AnyWorkload):
    """What every workload of transactions has: how many connections, and how they speak with the server."""

    clients: int = Field(1, ge=1, le=10_000, description="connections")
    threads: int | None = Field(
        None, ge=1, le=1024, description="threads of the load; by default one a load CPU, at most one a client"
    )
    mode: Mode = Field("prepared", description="how statements are sent, as pgbench --protocol names it")
    describe: bool = Field(
        False, description="send Describe with each execution, as pgbench does: for comparisons with equal messages"
    )
    retries_max: int = Field(
        0, ge=0, le=255, description="retries after a serialization failure (40001) or a deadlock (40P01)"
    )
    reconnect: bool = Field(False, description="reopen a connection that broke")

    def how_sent(self) -> Json:
        return {"mode": self.mode}

    def load_request(self, cpus: int) -> Json:
        return {
            "clients": self.clients,
            "threads": min(self.threads or cpus, self.clients),
            "mode": self.mode,
            "describe": self.describe,
            "retries_max": self.retries_max,
            "reconnect": self.reconnect,
        }


def some_weight(mix: dict[Any, int] | None) -> None:
    """Raises ValueError where every weight is 0."""
    if mix is not None and not any(mix.values()):
        raise ValueError("every weight of mix is 0; allowed: at least one weight above 0")
