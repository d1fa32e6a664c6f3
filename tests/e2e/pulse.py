"""Measures how long the machine itself stops: the floor below every gap in the work of its processes."""

from __future__ import annotations

import os
import threading
import time
from itertools import pairwise
from pathlib import Path

BEAT_SECONDS = 0.02


class Pulse:
    """Writes a file to the disk fifty times a second, as a database does at each commit, and records the pauses."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "pulse"
        self._beats: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()

    def stop(self) -> None:
        """Beat no more."""
        self._stop.set()
        self._thread.join()

    def longest_pause(self, since: float, until: float) -> float:
        """The longest time without a beat between two times, in seconds."""
        times = [since, *(at for at in list(self._beats) if since < at < until), until]
        return max(later - earlier for earlier, later in pairwise(times))

    def _work(self) -> None:
        with self._file.open("wb", buffering=0) as file:
            while not self._stop.wait(BEAT_SECONDS):
                file.seek(0)
                file.write(b"x")
                os.fsync(file.fileno())
                self._beats.append(time.time())
