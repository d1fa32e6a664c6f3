"""One command that is kept running: its process, its output, and when to start it again."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scheduling.management.warden import kill_session


@dataclass(frozen=True)
class ChildSpec:
    """A command to keep running: its name in the output, its arguments, its whole environment."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]


@dataclass(frozen=True)
class Backoff:
    """Seconds before a child that died is started again."""

    first: float = 1.0
    longest: float = 30.0
    forgiven_after: float = 60.0
    """A child that lived this long begins again with the first pause."""

    def after(self, previous: float, lived: float) -> float:
        """The pause after a life of `lived` seconds, the last pause having been `previous` (0: there was none)."""
        if not previous or lived >= self.forgiven_after:
            return self.first
        return min(previous * 2, self.longest)


class Child:
    """The present process of a command, if there is one, and the pause before the next.

    Attributes:
        due: when to start it again, on the monotonic clock; None while it runs.
        pause: seconds of the last pause.
    """

    def __init__(self, spec: ChildSpec) -> None:
        self.name = spec.name
        self.pause = 0.0
        self.due: float | None = None
        self._spec = spec
        self._born = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._output = -1

    @property
    def pid(self) -> int:
        """Of the present process; also the number of its session and group."""
        return self._present().pid

    @property
    def started(self) -> bool:
        """Whether there is a process that has not been buried."""
        return self._process is not None

    @property
    def alive(self) -> bool:
        """Whether the process has not ended by now."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process with its output readable without blocking.

        Raises:
            OSError: when the command cannot be started.
        """
        self.due = None
        self._born = time.monotonic()
        # Its own session: neither the terminal's Ctrl-C nor its hang-up reaches the child behind our back,
        # and everything it starts can be ended with it.
        self._process = subprocess.Popen(
            list(self._spec.argv),
            env=dict(self._spec.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._output = self.fileno()
        os.set_blocking(self._output, False)

    def fileno(self) -> int:
        """The read end of the output pipe."""
        stream = self._present().stdout
        return stream.fileno() if stream is not None else -1

    def read(self) -> bytes | None:
        """A piece of output; None when there is none at present, empty when there will be no more."""
        try:
            return os.read(self._output, 65536)
        except BlockingIOError:
            return None

    def ask(self) -> None:
        """SIGTERM to the process alone: it knows how to stop what it started."""
        self._present().terminate()

    def kill(self) -> None:
        """SIGKILL to everything in its session, and wait for the process to end."""
        kill_session(self.pid)
        self._present().wait()

    def bury(self) -> int:
        """Let go of a process that has ended, all its output having been read; return its return code."""
        process = self._present()
        if process.stdout is not None:
            process.stdout.close()
        self._process, self._output = None, -1
        return process.wait()

    def plan(self, backoff: Backoff) -> float:
        """Set when to start it again; return the pause in seconds."""
        now = time.monotonic()
        self.pause = backoff.after(self.pause, now - self._born)
        self.due = now + self.pause
        return self.pause

    def _present(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError(f"{self.name} is not running.")
        return self._process


def describe(returncode: int) -> str:
    """How a process ended, in words, from `Popen.returncode`."""
    if returncode >= 0:
        return f"ended with exit code {returncode}"
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        name = f"signal {-returncode}"
    return f"was killed by {name}"
