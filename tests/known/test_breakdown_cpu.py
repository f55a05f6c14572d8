"""Known work of the CPU and of memory lands in its bucket of the breakdown: a burn, a hog beside it, swapped pages."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from breakdown_server import Laboratory
from breakdown_truth import PAGE, Meter, Spent, large_mapping, on_one_cpu, page_out, slow_reads, swapped_pages
from breakdown_watch import MS, Request, ask, lands

from plimsoll.environment import Journal, SwapFile, Sysctl, discover
from plimsoll.environment.memory import page_cache

pytestmark = pytest.mark.alone

pytest_plugins = ("breakdown_quiet",)

BURN = "do $$ begin for i in 1..{} loop null; end loop; end $$"
PER_MS = 150_000  # turns of the loop in a millisecond, about
BURN_MS = 1009  # long enough that 2 % are more than the tick in which stolen time is counted
HOGGED_MS = 700  # a turn of the hog after the answer, which is not the request's, is less than 2 % of it
BALLAST_PAGES = 10007  # more than malloc ever keeps in its heap
SWAPPED_PAGES, READS_PER_SECOND = 1009, 1000
LIBRARY_READS_PER_SECOND = 4  # there are few: of its first pages, then ahead of the first fault
ELSEWHERE_NS = MS


def _burn(ms: int) -> str:
    return BURN.format(ms * PER_MS)


def _lands_on_cpu(request: Request, spent: Spent) -> None:
    """What comes after the answer, a moment, is not the request's; of a wake-up the kernel counts the end only."""
    lands(request, request.cpu_ns, spent.cpu_truth(request.cpu_ns), "cpu", elsewhere_ns=0)
    assert request.run_queue_ns <= spent.run_queue_ns + spent.vague_ns + ELSEWHERE_NS, spent


@contextlib.contextmanager
def _hog(cpu: int) -> Iterator[None]:
    """A process that never rests, on this CPU."""
    code = f"import os; os.sched_setaffinity(0, {{{cpu}}}); print(1, flush=True)\nwhile True: pass"
    hog = subprocess.Popen([sys.executable, "-I", "-S", "-c", code], stdout=subprocess.PIPE)
    try:
        assert hog.stdout is not None and hog.stdout.readline() == b"1\n"
        yield
    finally:
        hog.kill()
        hog.communicate()


def test_a_burn_of_known_length(quiet: Laboratory) -> None:
    with quiet.session() as client, quiet.watch() as watch:
        meter = Meter(ask(client, _burn(1)).pid)
        asked = ask(client, _burn(BURN_MS))
        spent = meter.read()
        idle = [ask(client, "select 1") for _ in range(5)]
    request = watch.the(asked)
    assert spent.cpu_ns > 100 * MS, "the burn is too short to tell anything"
    _lands_on_cpu(request, spent)
    assert request.waits == ()
    # One of them may have been on a CPU that the hypervisor took away.
    assert min(watch.the(one).cpu_ns for one in idle) < MS, "the control: nothing to burn"


def test_a_backend_beside_a_hog_on_one_cpu(quiet: Laboratory) -> None:
    cpu = max(os.sched_getaffinity(0))
    with quiet.session() as client, quiet.watch() as watch:
        pid = ask(client, _burn(1)).pid
        with on_one_cpu(pid, cpu):
            with _hog(cpu):
                meter = Meter(pid)
                pushed = ask(client, _burn(HOGGED_MS))
                spent = meter.read()
            meter = Meter(pid)
            alone = ask(client, _burn(HOGGED_MS))
            undisturbed = meter.read()
    request = watch.the(pushed)
    assert spent.run_queue_ns > 50 * MS, "the hog is none"
    found = request.run_queue_ns
    lands(request, found, spent.run_queue_truth(found), "run_queue", elsewhere_ns=0)
    _lands_on_cpu(request, spent)
    assert request.waits == ()
    control = watch.the(alone)
    _lands_on_cpu(control, undisturbed)


def _ballast(client: psycopg.Connection) -> tuple[int, range]:
    """Fills pages of a backend's own memory: a setting is a text that stays where it is."""
    size = BALLAST_PAGES * PAGE - 2 * PAGE
    pid = ask(client, f"select length(set_config('known.ballast', repeat('x', {size}), false))").pid
    return pid, large_mapping(pid, size)


def test_swapped_pages_of_a_known_number(needs: Callable[..., None], quiet: Laboratory, run_id: str) -> None:
    """One page a fault, since the kernel brings no others. Reads are let through some at a time: many never wait."""
    needs("swap", "blkio throttling")
    look = "select length(current_setting('known.ballast'))"
    with Journal.create(quiet.state, run_id) as journal, quiet.session() as client, quiet.watch() as watch:
        SwapFile(quiet.state, run_id).set(128 << 20, journal)
        Sysctl("vm.page-cluster").set(0, journal)
        pid, memory = _ballast(client)
        memory = memory[: SWAPPED_PAGES * PAGE]
        ask(client, look)
        page_out(pid, memory)  # written, but kept until that is done
        ask(client, look)
        page_out(pid, memory)
        away = swapped_pages(pid)
        with slow_reads(run_id, pid, SwapFile(quiet.state, run_id).path, READS_PER_SECOND):
            meter = Meter(pid)
            asked = ask(client, look)
            spent = meter.read()
        back = away - swapped_pages(pid)
        meter = Meter(pid)
        again = ask(client, look)
        warm = meter.read()
    assert away == back == SWAPPED_PAGES
    # One that is being written yet when it is put away for the second time does not go.
    assert SWAPPED_PAGES * 19 // 20 <= spent.major_faults <= SWAPPED_PAGES
    request = watch.the(asked)
    found = request.blocked_ns("swap_in")
    lands(request, found, spent.blocked_truth(found), "swap_in", elsewhere_ns=0)
    wait = request.wait("page fault")
    assert SWAPPED_PAGES // 20 < wait.count <= SWAPPED_PAGES and spent.waited_about(wait.count)
    assert warm.major_faults == 0 and watch.the(again).waits == (), "the control: all of it is there"


def test_pages_of_a_library_are_no_swapped_ones(needs: Callable[..., None], quiet: Laboratory, run_id: str) -> None:
    """A backend loads a library that is not in the page cache, and another one that then is."""
    needs("blkio throttling")
    library = quiet.state.root / "known.so"
    libraries = (Path(discover.servers()[-1].bin_dir).parent / "lib").glob("*.so")
    shutil.copyfile(max(libraries, key=lambda path: path.stat().st_size), library)
    library.chmod(0o755)
    os.sync()
    load = f"load '{library}'"
    with quiet.session() as client, quiet.session() as other, quiet.watch() as watch:
        pid = ask(client, "select 1").pid
        ask(other, "select 1")
        page_cache.evict(library)
        with slow_reads(run_id, pid, library, LIBRARY_READS_PER_SECOND):
            meter = Meter(pid)
            asked = ask(client, load)
            spent = meter.read()
        again = ask(other, load)
    request = watch.the(asked)
    assert request.blocked_ns("swap_in") == 0
    assert 0 < request.wait("page fault on a file").count <= spent.major_faults
    assert request.wait("page fault on a file").bucket == "other_wait"
    found = sum(wait.ns for wait in request.waits)
    lands(request, found, spent.blocked_truth(found), "other_wait", "unattributed", elsewhere_ns=0)
    assert watch.the(again).waits == (), "the control: all of it is there"
