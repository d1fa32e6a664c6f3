"""Keeps the descriptors of gunicorn's worker open until its process ends."""

from __future__ import annotations

from typing import Any


def keep_descriptors(worker: Any) -> None:
    """Do not let a worker that stops close the pipe by which its threads wake its main loop.

    gunicorn's worker with threads (23 to 27 at least) closes this pipe when it has waited `graceful_timeout` for its
    requests. A request that ends later still writes one byte to the number of the descriptor. If SQLite has opened its
    file meanwhile, the system may have given it this number. The byte is then written over the first byte of the
    database, and each process reads "file is not a database". The process ends when its last request does, and with it
    the pipe.

    Args:
        worker: a worker of gunicorn. One without threads has no such pipe, and stays as it is.
    """
    queue = getattr(worker, "method_queue", None)
    if queue is not None:
        queue.close = _nothing


def _nothing() -> None:
    pass
