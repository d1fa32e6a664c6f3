"""The keeper is the parent of the processes that a run has left running. It ends when all of them have ended.

When a run with `leaves_processes` has ended, its child becomes the keeper: it replaces its program by this file. The
processes therefore keep their parent. So the forkserver can tell them from the processes that other runs have left
behind, which it kills. A keeper needs little memory, whatever the handler used.

When the consumer stops, the keeper ends, too (PR_SET_PDEATHSIG), and the system adopts the processes. If the keeper is
killed while the consumer lives, the forkserver kills the processes.

The child runs this file by its path (`python -I -S keeper.py`). The file uses only the standard library.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)


def become_keeper() -> None:
    """Replace this child by a keeper. Returns when all processes have ended, but only if the program cannot start."""
    with suppress(OSError):
        os.chdir("/")
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    for timer in _TIMERS:
        signal.setitimer(timer, 0)  # an alarm that the handler has set would end the new program, too
    _ignore_signals()
    with suppress(OSError):
        os.execv(sys.executable, [sys.executable, "-I", "-S", __file__])  # noqa: S606 - no shell is wanted
    keep()


def keep() -> None:
    """Reap this process's children, and the orphans that it adopts, until there are none."""
    with suppress(ChildProcessError):
        while True:
            os.wait()


def _ignore_signals() -> None:
    """Ignore the signals that one of the processes may send to its group, which is also the keeper's group."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    _ignore_signals()  # Python has installed a handler for SIGINT
    keep()
