"""Choose the data folder of one test process."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path


def data_folder() -> Path:
    """Return DATA_DIR. If DATA_DIR is not set, return a temporary folder that this process removes when it ends.

    With pytest-xdist, each process gets a separate folder inside DATA_DIR or inside the temporary folder.
    """
    if "DATA_DIR" not in os.environ:
        os.environ["DATA_DIR"] = tempfile.mkdtemp(prefix="cron-tests-")
        atexit.register(_remove, os.environ["DATA_DIR"], os.getpid())
    folder, worker = Path(os.environ["DATA_DIR"]), os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker and folder.name != worker:
        folder /= worker
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # a forked process also calls this function at its exit; it must not remove the folder
        shutil.rmtree(folder, ignore_errors=True)
