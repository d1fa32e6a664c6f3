"""Ends the children of a foreman that died without being able to end them itself.

A foreman killed with SIGKILL, by the kernel for want of memory say, runs no code of its own. So it holds the write
end of a pipe that this small process reads: the kernel closes that end however the foreman ends, the reader sees
the end of the file, and ends what is still on its list. Beside the two usual ways:

- PR_SET_PDEATHSIG is Linux alone, reaches the direct child but not what that child started, and needs code between
  fork and exec;
- a pipe that each child watches needs code in each child, and gunicorn is not ours.

The process is run by path (`python -I -S warden.py`), so it uses the standard library only and starts in
milliseconds. Its input: a line `+pid` for a session that began, `-pid` for one that ended.
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


class Warden:
    """The foreman's end of the pipe. Use it as a context manager.

    Args:
        grace: seconds between SIGTERM and SIGKILL, should it ever have to act.
    """

    def __init__(self, grace: float) -> None:
        self._grace = grace

    def __enter__(self) -> Warden:
        # A session of its own: the terminal's Ctrl-C and hang-up are the foreman's business.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, str(self._grace)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return self

    def __exit__(self, *_exc: object) -> None:
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        self._process.wait()

    def began(self, pid: int) -> None:
        """Watch over the session led by `pid`."""
        self._tell(f"+{pid}\n")

    def ended(self, pid: int) -> None:
        """Forget the session led by `pid`: its number may soon be another process's."""
        self._tell(f"-{pid}\n")

    def _tell(self, line: str) -> None:
        # It is a second net under the foreman's own order; losing it is no reason to stop what runs.
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.write(line.encode())
                self._process.stdin.flush()


def kill_session(leader: int) -> None:
    """SIGKILL to the process group of `leader` and to every group of the session it leads.

    A consumer's children lead groups of their own inside its session, where a signal to its group does not reach them.
    """
    with suppress(ProcessLookupError, PermissionError):  # macOS: PermissionError for a group of zombies
        os.killpg(leader, signal.SIGKILL)
    for pid in _members(leader):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _members(session: int) -> list[int]:
    """Processes of a session as Linux lists them; none where there is no /proc."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError, ValueError):
            # "pid (name) state ppid pgrp session ...": the name may hold spaces and brackets.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                found.append(int(entry.name))
    return found


def read_sessions(lines: Iterable[str]) -> set[int]:
    """The sessions that were begun and not ended when the input ended."""
    sessions: set[int] = set()
    for line in lines:
        pid = int(line[1:])
        if line[0] == "+":
            sessions.add(pid)
        else:
            sessions.discard(pid)
    return sessions


def end_sessions(sessions: set[int], grace: float) -> None:
    """SIGTERM to each leader; SIGKILL to the whole session of those that outlive `grace` seconds."""
    for pid in sessions:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + grace
    alive = set(sessions)
    while alive and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        # One that is gone is never looked at again: its number may have been given away.
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
