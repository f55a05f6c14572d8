"""The folder that a load on files is performed on: no server, only where the files lie."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plimsoll.environment.devices import mount_of
from plimsoll.target.server import LoadedServer

Json = dict[str, Any]
# What decides of a mount whether a write that was acknowledged is on the device.
DURABILITY = ("sync", "dirsync", "lazytime", "barrier", "nobarrier", "data", "commit", "noac", "soft", "hard")


@dataclass(frozen=True)
class FolderTarget:
    """How the agent is told of it."""

    folder: Path

    def as_request(self) -> Json:
        """The agent's `target`."""
        return {"kind": "files", "folder": str(self.folder)}


class Folder(LoadedServer):
    """A folder, as the flow sees a server."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.load_connection = FolderTarget(data)

    def describe(self) -> Json:
        mount = mount_of(self.data)
        options = {name: value or True for name, _, value in (option.partition("=") for option in mount.options)}
        return {
            "version": f"{mount.fs}, Linux {os.uname().release}",
            "settings": {"file system": mount.fs, "mounted from": mount.source, "options": ",".join(mount.options)},
            "durability": {"file system": mount.fs} | {key: options[key] for key in DURABILITY if key in options},
        }
