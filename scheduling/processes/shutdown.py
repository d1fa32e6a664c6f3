"""Handles stop signals.

The first signal asks the process to finish its work and then to stop. The second signal asks it not to wait. A consumer
also knows SIGUSR1: it stops, and waits for its work without a limit.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any

from scheduling.logs import get_logger

log = get_logger(__name__)

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""The stop signals. SIGHUP comes from a closed terminal. A signal that the process already ignores (nohup) stays
ignored."""


class ShutdownRequest:
    """A context manager that counts stop signals. Each signal adds 1 to `asked` and makes `fileno` readable.

    Args:
        drains: whether SIGUSR1 asks the process to drain: to stop when its work is over, however long that takes.

    The old signal handlers are restored at the end. Outside the main thread (in tests), signals are not handled, and
    the tests call `ask`.
    """

    def __init__(self, *, drains: bool = False) -> None:
        self.asked = 0
        """How often the process was asked to stop. 0: go on. 1: finish the work. 2 or more: do not wait."""
        self.patient = False
        """Whether there is no limit for finishing the work. A stop signal ends this."""
        self._signals = (*SIGNALS, signal.SIGUSR1) if drains else SIGNALS
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._former: dict[int, Any] = {}
        self._untold: list[int] = []
        """The signals that have arrived and are not logged yet. A signal handler must not write to a stream."""

    def __enter__(self) -> ShutdownRequest:
        if threading.current_thread() is threading.main_thread():
            for number in self._signals:
                if signal.getsignal(number) is signal.SIG_IGN:
                    continue
                self._former[number] = signal.signal(number, self._heard)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)
        self._former.clear()
        read, write = self._read, self._write
        self._read = self._write = -1  # the numbers may soon be those of a database's file
        os.close(read)
        os.close(write)

    def _heard(self, number: int, _frame: FrameType | None) -> None:
        self._untold.append(number)
        if number == signal.SIGUSR1:
            self.drain()
        else:
            self.ask()

    def drain(self) -> None:
        """Ask the process to stop when its work is over. This changes nothing if it was already asked to stop."""
        if not self.asked:
            self.patient = True  # first: a stop signal between the two lines ends it, and its own stop is this one
            self.asked += 1
            self._wake()

    def ask(self) -> None:
        """Ask the process to stop. A second call asks the process not to wait; after `drain`, a third one does."""
        if self.patient:
            self.patient = False  # the time to finish begins
        else:
            self.asked += 1
        self._wake()

    def _wake(self) -> None:
        with suppress(BlockingIOError, OSError):
            os.write(self._write, b"x")

    def fileno(self) -> int:
        """A descriptor that becomes readable when the process is asked to stop. It stays readable until `clear`."""
        return self._read

    def clear(self) -> None:
        """Make `fileno` unreadable again, and log the signals that have arrived. `asked` keeps its value."""
        with suppress(BlockingIOError):
            os.read(self._read, 64)
        self._tell()

    def _tell(self) -> None:
        while self._untold:
            number = self._untold.pop(0)
            if number == signal.SIGUSR1:
                log.warning("SIGUSR1 received, stopping when all runs are over")
                continue
            first = self.asked - sum(one != signal.SIGUSR1 for one in self._untold) <= 1
            then = "shutting down gracefully..." if first else "not waiting any longer"
            log.warning("%s received, %s", signal.Signals(number).name, then)

    def wait(self, seconds: float) -> bool:
        """Wait until the process is asked to stop or the time is over. Returns whether it was asked to stop."""
        import select

        if not self.asked and seconds > 0:
            select.select([self._read], [], [], seconds)
            self.clear()
        self._tell()
        return self.asked > 0
