"""Stop: one place handles signals. The first asks, the second insists; handlers are restored."""

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
"""SIGHUP is a closed terminal; under nohup it is ignored already, and stays so."""


class Stop:
    """A context in which SIGTERM and SIGINT set flags and wake whoever waits on `fileno`.

    Off the main thread (a test) no handler is installed; `ask` does the same.
    """

    def __init__(self) -> None:
        self.asked = 0
        """How often; 0 go on, 1 drain, 2 do not wait."""
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._former: dict[int, Any] = {}

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
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
        os.close(self._read)
        os.close(self._write)

    def _heard(self, number: int, _frame: FrameType | None) -> None:
        self.ask()

    def ask(self) -> None:
        """Ask to stop; asked again, insist."""
        self.asked += 1
        with suppress(BlockingIOError, OSError):
            os.write(self._write, b"x")

    def fileno(self) -> int:
        """Readable once asked; `clear` makes it wait for the next."""
        return self._read

    def clear(self) -> None:
        """Forget the wake-up, not the question."""
        with suppress(BlockingIOError):
            os.read(self._read, 64)

    def wait(self, seconds: float) -> bool:
        """Wait until asked or the time is over; whether asked."""
        import select

        if not self.asked and seconds > 0:
            select.select([self._read], [], [], seconds)
            self.clear()
        return self.asked > 0
