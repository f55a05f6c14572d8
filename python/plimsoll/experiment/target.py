"""The server under test, as an experiment names it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from plimsoll.experiment.places import is_name
from plimsoll.experiment.strict import Fixed, FreeKeys, Scalar, Strict, Version

SETTINGS = FreeKeys(
    r"[a-z_][a-z0-9_.]*", "the name of a setting", "lower-case names such as work_mem", is_varied_whole=False
)


RELATIONS = FreeKeys(
    r"[a-z_][a-z0-9_]*", "the name of a table or an index", "lower-case names such as pgbench_accounts"
)


class Files(Strict):
    """Where a private server's files lie during a trial: folders that are there, or places of [environment.places]."""

    data: str | None = Field(
        None,
        description='of the cluster, or with server = "files" of the files, or of a web server the document root; by '
        "default in the state folder. In a folder that is named each trial has a folder of its own, which is removed "
        "after it",
    )
    wal: str | None = Field(None, description="of the write-ahead log; by default with the data")
    temp: str | None = Field(None, description="of temporary files, by a tablespace of their own; by default as data")
    program: str | None = Field(
        None, description="of a web server's program: users, advertisements and the log of POSTs; by default as data"
    )
    tablespaces: Annotated[dict[str, str], RELATIONS] = Field(
        default_factory=dict, description="of single tables and indexes, by name, each in a tablespace there"
    )

    @field_validator("data", "wal", "temp", "program")
    @classmethod
    def _absolute(cls, value: str | None) -> str | None:
        return None if value is None else _place_or_path(value)

    @field_validator("tablespaces")
    @classmethod
    def _all_absolute(cls, value: dict[str, str]) -> dict[str, str]:
        for place in value.values():
            _place_or_path(place)
        return value

    @property
    def given(self) -> dict[str, str]:
        """The folders and places that are named, by key."""
        parts = {key: getattr(self, key) for key in ("data", "wal", "temp", "program")}
        named = {key: value for key, value in parts.items() if value is not None}
        return named | {f"tablespaces.{relation}": place for relation, place in self.tablespaces.items()}


def _place_or_path(value: str) -> str:
    if not is_name(value) and (not value.startswith("/") or ".." in value.split("/")):
        raise ValueError(
            f"{value!r} is not an absolute path; allowed: a folder such as /mnt/log, or the name of a place"
        )
    return value


class Target(Strict):
    """The server under test."""

    server: Literal["postgresql", "duckdb", "files", "nginx", "apache"] = Field(
        "postgresql",
        description='"duckdb": embedded, of Plimsoll\'s own installation; decision_support only; "files": none, the '
        'load is on files of a folder; "nginx", "apache": web servers',
    )
    version: Version = Field("any", pattern=r"^(any|\d+)$", description='major version, or "any": the newest found')
    dsn: Annotated[str | None, Fixed("a run on an existing server has that one server")] = Field(
        None, description="connection string of an existing server: it is used as it is, never configured or restarted"
    )
    url: Annotated[str | None, Fixed("a run on an existing server has that one server")] = Field(
        None,
        pattern=r"^http://[^\s/?#@]+(/[^\s?#]*)?$",
        description="of an existing web server, where it serves the folder target.files.data of this machine: it is "
        "used as it is, never configured or restarted",
    )
    transport: Literal["socket", "tcp"] = Field(
        "socket", description="how a private server is reached: its Unix socket, or TCP over loopback"
    )
    files: Files = Field(default_factory=Files, description="paths of their own for data, log and temporary files")
    settings: Annotated[dict[str, Scalar], SETTINGS] = Field(
        default_factory=dict, description="settings of a private server"
    )

    @property
    def named(self) -> str:
        """The server by the key that names it."""
        if self.url is not None:
            return "target.url names a web server"
        return "target.dsn names a database" if self.dsn is not None else f'target.server is "{self.server}"'

    @property
    def is_of_somebody_else(self) -> bool:
        """Whether it names a server that is there already, of which nothing can be arranged."""
        return self.dsn is not None or self.url is not None

    @field_validator("settings")
    @classmethod
    def _ours_or_broken(cls, value: dict[str, Scalar]) -> dict[str, Scalar]:
        ours = {"port", "listen_addresses", "unix_socket_directories", "data_directory", "logging_collector"}
        for name, setting in value.items():
            if name in ours:
                raise ValueError(f"{name} is chosen by Plimsoll; allowed: every other setting of the server")
            if isinstance(setting, str) and ("\n" in setting or "\0" in setting):
                raise ValueError(f"{name} holds a line break; allowed: one line")
        return value
