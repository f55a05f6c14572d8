"""The verb `import`: calls of NFS from a packet capture that somebody took."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from plimsoll.cli.folders import folder_for, shown
from plimsoll.cli.options import refuse

if TYPE_CHECKING:
    from plimsoll.analysis.captures.document import CaptureDocument


def run(file: Path, out: Path | None, mountstats: tuple[Path, Path] | None, as_json: bool, is_with_files: bool) -> int:
    """Imports, and ends with the table of calls, the record and the page."""
    from plimsoll.cli.console import tell
    from plimsoll.run import agent
    from plimsoll.run.importing import import_capture

    if not file.is_file():
        refuse("FILE", f"{file}: {'not a file' if file.exists() else 'there is no such file'}", "a pcap or pcapng file")
    texts = _texts(mountstats) if mountstats is not None else None
    folder = folder_for("capture", out).absolute()

    def on_progress(done: int, of_all: int) -> None:
        if not as_json:
            tell(f"{done / 1e6:,.0f} of {of_all / 1e6:,.0f} MB")

    try:
        import_capture(file, folder, sys.argv, on_progress, texts)
    except agent.AgentFailed as error:
        if error.code == agent.EXIT_BAD_REQUEST:
            shutil.rmtree(folder, ignore_errors=True)
            refuse("FILE", error.message.removeprefix("file: "), "a capture by tcpdump, dumpcap or Wireshark")
        raise
    document, page = judge(folder, is_with_files)
    if as_json:
        print(json.dumps({"run": str(folder), "report": str(page), "capture": document}))
    else:
        show(document, page)
    return 0


def _texts(files: tuple[Path, Path]) -> tuple[str, str]:
    """The client's texts; refused before anything is made where they cannot be compared."""
    from plimsoll.analysis.captures.mountstats import MountstatsError, all_grown

    for file in files:
        if not file.is_file():
            refuse("--mountstats", f"{file}: there is no such file", "copies of the client's /proc/self/mountstats")
    before, after = (file.read_text(encoding="utf-8", errors="replace") for file in files)
    try:
        all_grown(before, after)
    except MountstatsError as error:
        refuse("--mountstats", str(error), "copies of one client's /proc/self/mountstats, before and after")
    return before, after


def judge(folder: Path, is_with_files: bool) -> tuple[CaptureDocument, Path]:
    """The document from the record, and its page."""
    from plimsoll.analysis.captures.verdict import analyse_capture
    from plimsoll.record import open_run, writer
    from plimsoll.report.captures.page import write_capture_report

    document = analyse_capture(open_run(folder))
    writer.write_json(folder / "capture.json", document)
    return document, write_capture_report(folder, is_with_files)


def show(document: CaptureDocument, page: Path) -> None:
    """For people."""
    from plimsoll.words.captures import capture_lines

    print("\n".join([*capture_lines(document), "", f"Report: {shown(page)}"]))
