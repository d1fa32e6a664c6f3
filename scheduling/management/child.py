"""Manages the process, the output and the restarts of one of the foreman's children.

In this module, a child is a command that the foreman keeps running, such as the web server or a consumer.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from scheduling.management.orphan_reaper import kill_session

BRIEF_SECONDS = 5.0

Demand: TypeAlias = Callable[[], Sequence[str] | None]


@dataclass(frozen=True)
class ChildSpec:
    """A command that the foreman keeps running.

    Args:
        name: its name in the output.
        argv: its arguments.
        env: its whole environment.
        demand: returns further arguments, or None while the command is not needed. If it returns other arguments than
            at the start of the command, the command is started again with them. Without it, the command always runs.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    demand: Demand | None = None


@dataclass(frozen=True)
class Backoff:
    """The pauses, in seconds, before the foreman restarts a child that has ended."""

    first: float = 1.0
    longest: float = 30.0
    forgiven_after: float = 60.0
    """If a child ran for at least this many seconds, the next pause is `first` again."""

    def after(self, previous: float, lived: float) -> float:
        """The pause in seconds before the next start.

        Args:
            previous: the last pause; 0 if there was none.
            lived: how long the child ran.
        """
        if not previous or lived >= self.forgiven_after:
            return self.first
        return min(previous * 2, self.longest)


class Child:
    """A command with its current process, if there is one, and the time of its next start.

    Attributes:
        due: when to start the command again, in seconds of the monotonic clock; None if no restart is planned.
        pause: length of the last pause in seconds.
        leaving: whether the process was asked to end, because the command is not needed, or needs other arguments.
    """

    def __init__(self, spec: ChildSpec) -> None:
        self.name = spec.name
        self.pause = 0.0
        self.due: float | None = None
        self.leaving = False
        self._spec = spec
        self._further: Sequence[str] = ()
        self._born = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._output = -1

    @property
    def pid(self) -> int:
        """The id of the current process. The process's session and process group have the same id."""
        return self._present().pid

    @property
    def wanted(self) -> bool:
        """Whether the command should run."""
        return self._spec.demand is None or self._spec.demand() is not None

    @property
    def outdated(self) -> bool:
        """Whether the command should run with other arguments than it does."""
        return self._spec.demand is not None and self._spec.demand() != self._further

    @property
    def started(self) -> bool:
        """Whether a process has been started and `bury` has not been called since."""
        return self._process is not None

    @property
    def alive(self) -> bool:
        """Whether the process is running."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process. Its output can be read without blocking.

        Raises:
            OSError: when the command cannot be started.
        """
        self.due, self.leaving = None, False
        self._born = time.monotonic()
        if self._spec.demand is not None:
            self._further = self._spec.demand() or ()
        # The child gets a session of its own. So the terminal's Ctrl-C and hang-up do not reach the child. The foreman
        # can also kill the whole session: the child and all processes that the child started.
        self._process = subprocess.Popen(
            [*self._spec.argv, *self._further],
            env=dict(self._spec.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._output = self.fileno()
        os.set_blocking(self._output, False)

    def fileno(self) -> int:
        """The file descriptor of the output pipe's read end."""
        stream = self._present().stdout
        return stream.fileno() if stream is not None else -1

    def read(self) -> bytes | None:
        """The next bytes of the output; None if no output is waiting, and empty at the end of the output."""
        try:
            return os.read(self._output, 65536)
        except BlockingIOError:
            return None

    def ask(self) -> None:
        """Send SIGTERM only to the process itself. The process then stops the processes that it has started."""
        self._present().terminate()

    def kill(self) -> None:
        """Send SIGKILL to every process of the child's session, and wait until the child has ended."""
        kill_session(self.pid)
        self._present().wait()

    def bury(self) -> int:
        """Forget the process and return its return code.

        Call this method after the process has ended and all its output has been read.
        """
        process = self._present()
        if process.stdout is not None:
            process.stdout.close()
        self._process, self._output = None, -1
        return process.wait()

    def plan(self, backoff: Backoff) -> float:
        """Set the time of the next start. Returns the pause before this start, in seconds."""
        now = time.monotonic()
        self.pause = backoff.after(self.pause, now - self._born)
        self.due = now + self.pause
        return self.pause

    def plan_at_once(self, backoff: Backoff) -> None:
        """Start the command again at once, because its code has changed.

        A command that ran for less than BRIEF_SECONDS is started after a pause instead. Its files may change at every
        start, and it must not start again and again without end.
        """
        if time.monotonic() - self._born < BRIEF_SECONDS:
            self.plan(backoff)
        else:
            self.pause, self.due = 0.0, time.monotonic()

    def leave(self) -> None:
        """Ask the process to end. `bury` is called when it has ended."""
        self.leaving = True
        self.ask()

    def _present(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError(f"{self.name} is not running.")
        return self._process


def describe(returncode: int) -> str:
    """Describe how a process ended, for example `ended with exit code 1`.

    Args:
        returncode: the value of `Popen.returncode`.
    """
    if returncode >= 0:
        return f"ended with exit code {returncode}"
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        name = f"signal {-returncode}"
    return f"was killed by {name}"
