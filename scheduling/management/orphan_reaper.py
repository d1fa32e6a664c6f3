"""The orphan reaper is a small process. If the foreman dies without ending its children, the orphan reaper ends them.

A foreman that is killed with SIGKILL cannot stop its children. (The kernel sends this signal when memory runs out, for
example.) So the foreman writes to a pipe, and the reaper reads from the pipe. The foreman writes the line `+pid` when a
child's session begins, and the line `-pid` when the session has ended. When the foreman dies for any reason, the kernel
closes the pipe. Then the reaper ends all sessions that have begun and have not ended.

Two other common ways to end the children of a dead foreman are not enough:

- The option PR_SET_PDEATHSIG exists only on Linux and needs code between fork and exec. The signal of this
  option reaches the child, but not the processes that the child started.
- A pipe that every child watches needs code in every child. Gunicorn has no such code.

The foreman runs this file by its path (`python -I -S orphan_reaper.py`). The file uses only the standard library, so
the reaper starts in milliseconds.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

POLL_SECONDS = 0.1


class OrphanReaper:
    """A context manager that starts the orphan reaper and holds the foreman's end of the pipe.

    Args:
        grace: seconds between SIGTERM and SIGKILL if the foreman dies.
    """

    def __init__(self, grace: float) -> None:
        self._grace = grace

    def __enter__(self) -> OrphanReaper:
        # The reaper gets a session of its own, so that the terminal's Ctrl-C and hang-up do not reach the reaper.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, str(self._grace)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return self

    def __exit__(self, *_exc: object) -> None:
        self._process.communicate()  # closes the pipe and waits

    def began(self, pid: int) -> None:
        """Tell the reaper that the session of the child `pid` has begun."""
        self._tell(f"+{pid}\n")

    def ended(self, pid: int) -> None:
        """Tell the reaper that the session of the child `pid` has ended. A new process may later get this pid."""
        self._tell(f"-{pid}\n")

    def _tell(self, line: str) -> None:
        # The foreman and its children must continue even if the reaper has died.
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.write(line.encode())
                self._process.stdin.flush()


def kill_session(leader: int) -> None:
    """Send SIGKILL to the process group and to the session of the process `leader`.

    A signal to a consumer's process group does not reach the consumer's children. They are in the consumer's session,
    but each child has a process group of its own.
    """
    with suppress(ProcessLookupError, PermissionError):  # macOS: PermissionError for a group of zombies
        os.killpg(leader, signal.SIGKILL)
    for pid in _members(leader):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _members(session: int) -> list[int]:
    """The ids of the processes in a session. The list is empty on systems without /proc, such as macOS."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError, ValueError):
            # The format is "pid (name) state ppid pgrp session ...". The name may contain spaces and brackets.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                found.append(int(entry.name))
    return found


def read_sessions(lines: Iterable[str]) -> set[int]:
    """Read lines `+pid` and `-pid` until the input ends. Returns the sessions that have begun and have not ended."""
    sessions: set[int] = set()
    for line in lines:
        pid = int(line[1:])
        if line[0] == "+":
            sessions.add(pid)
        else:
            sessions.discard(pid)
    return sessions


def end_sessions(sessions: set[int], grace: float) -> None:
    """Send SIGTERM to the leader of each session. After `grace` seconds, kill each session whose leader still runs."""
    for pid in sessions:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + grace
    alive = set(sessions)
    while alive and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        # A leader that has ended is not checked again, because a new process may get the same pid.
        alive = {pid for pid in alive if _exists(pid)}
    for pid in alive:
        kill_session(pid)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    end_sessions(read_sessions(sys.stdin), float(sys.argv[1]))
