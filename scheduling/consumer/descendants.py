"""What the consumer asks of the kernel about its processes: who dies with whom, and who has left processes behind."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

MOST_NAMED = 10
"""How many of the processes that a run leaves running are named."""


def die_with_parent(enabled: bool = True) -> None:
    """On Linux, ask the kernel to kill this process when its parent dies, even if SIGKILL ended the parent."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL if enabled else 0)


def adopt_orphans() -> None:
    """On Linux, become the parent of each descendant whose own parent ends, also of those in other sessions."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def kill_group(leader: int, number: int = signal.SIGKILL) -> None:
    """Send a signal to a child's process group, if the group still exists."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def own_children() -> list[int]:
    """The process ids of the children of this process's main thread; empty on systems other than Linux."""
    with suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [int(pid) for pid in file.read().split()]
    return []


class Found(NamedTuple):
    """A process that is alive. `pages` is its resident memory, in units of `PAGE_BYTES`."""

    pid: int
    name: str
    parent: int
    pages: int


def all_processes() -> Iterator[Found]:
    """The processes of this machine that are alive; none on systems other than Linux."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError, ValueError):  # the process may have ended meanwhile
            # The format is "pid (name) state ppid ...". The name may contain spaces and brackets.
            head, _, rest = (entry / "stat").read_text(errors="replace").rpartition(")")
            columns = rest.split()
            if columns[0] != "Z":
                yield Found(int(entry.name), head.partition("(")[2], int(columns[1]), int(columns[21]))


def living_descendants() -> list[tuple[int, str]]:
    """The process id and the command name of each process below this one; empty on systems other than Linux."""
    children: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for process in all_processes():
        children[process.parent].append((process.pid, process.name))
    found, parents = [], [os.getpid()]
    while parents:
        born = children.pop(parents.pop(), [])
        found += born
        parents += [pid for pid, _ in born]
    return found


def named_descendants() -> str:
    """The ids and names of the first living descendants, and how many more there are; empty if there are none."""
    found = [f"{pid} {name}" for pid, name in living_descendants()]
    more = [f"{len(found) - MOST_NAMED} more"] if len(found) > MOST_NAMED else []
    return ", ".join(found[:MOST_NAMED] + more)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            _libc().prctl(option, value, 0, 0, 0)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)
