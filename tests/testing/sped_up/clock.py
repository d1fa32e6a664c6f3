"""A clock of the day that runs faster for the processes of a test, see clock.c.

libfaketime is not used. Debian's release knows no `sem_clockwait`, so a thread that waits with a time-out would wait
for ever; and with a real monotonic clock, `time.sleep` fails under it.
"""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("clock.c")
NUMBER = struct.Struct("q")
SETTING = struct.Struct("3q")


def library(folder: Path) -> Path:
    """Compile the library. Where that is impossible, the test is skipped; in CI, it fails."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not sys.platform.startswith("linux") or compiler is None:
        if os.environ.get("CI"):
            pytest.fail("the sped-up clock needs a C compiler")
        pytest.skip("the sped-up clock needs Linux and a C compiler")
    made = folder / "clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(made), str(SOURCE)], check=True)
    return made


class SpedUpClock:
    """The clock. It begins now, as fast as the real one.

    Args:
        begin: the time of day that it shows now, aware.
        folder: where it keeps its file.
    """

    def __init__(self, begin: datetime, folder: Path, library: Path) -> None:
        path = folder / "clock"
        path.write_bytes(bytes(NUMBER.size + 2 * SETTING.size))
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), 0)
        self._valid = 0
        self._set(time.time_ns(), begin, 1)
        self.environment = {"LD_PRELOAD": str(library), "SPED_UP_CLOCK": str(path)}

    def speed_up(self, rate: int) -> None:
        """Let the clock run so many times faster than the real one from now on."""
        real = time.time_ns()
        self._set(real, self._shown(real), rate)

    def now(self) -> datetime:
        """The time of day that the processes see."""
        return self._shown(time.time_ns())

    def _shown(self, real: int) -> datetime:
        return self._begin + timedelta(microseconds=(real - self._real) * self._rate / 1000)

    def _set(self, real: int, begin: datetime, rate: int) -> None:
        self._real, self._begin, self._rate = real, begin, rate
        other = 1 - self._valid
        shown = round(begin.timestamp() * 1_000_000) * 1000
        SETTING.pack_into(self._shared, NUMBER.size + other * SETTING.size, real, shown, rate)
        NUMBER.pack_into(self._shared, 0, other)
        self._valid = other
