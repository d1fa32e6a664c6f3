"""A folder for the temporary files of one workbook. It does not outlive the next workbook of this host."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "report-xlsx-"

YOUNG_SECONDS = 60.0
"""A folder that was changed so recently is never removed: its process may not have locked it yet."""


@contextmanager
def scratch_folder(young_seconds: float = YOUNG_SECONDS) -> Iterator[Path]:
    """Make a folder in the system's place for temporary files, and remove it at the end of the `with` block.

    The folder is also removed if the block raises an error, or if SIGTERM ends the run. SIGKILL gives a process no time
    to remove the folder. Each folder is therefore locked, the operating system releases the lock when the process ends,
    and each call removes the folders of this user whose locks are free.

    Args:
        young_seconds: see YOUNG_SECONDS.

    Raises:
        OSError: no folder can be made.
    """
    remove_left(young_seconds)
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as name:
        lock = os.open(name, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with suppress(OSError):  # without locks, no other process can remove the folder either
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield Path(name)
        finally:
            os.close(lock)


def remove_left(young_seconds: float = YOUNG_SECONDS) -> None:
    """Remove the folders of this user that killed processes have left. What cannot be removed stays."""
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX):
                with suppress(OSError):
                    _remove_if_left(Path(entry.path), young_seconds)


def _remove_if_left(folder: Path, young_seconds: float) -> None:
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        facts = os.fstat(lock)
        if facts.st_uid == os.geteuid() and time.time() - facts.st_mtime >= young_seconds:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises BlockingIOError while the folder is in use
            shutil.rmtree(folder, ignore_errors=True)  # it refuses a link, which another user can make here
    finally:
        os.close(lock)
