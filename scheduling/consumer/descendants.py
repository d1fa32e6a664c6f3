"""What the consumer asks of the kernel about its processes: who dies with whom, and who has left processes behind."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


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


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
