"""Looks into the database regularly, in a thread of its own: a database that hangs does not hold up the caller."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from django.db import connections


class BackgroundLook:
    """Calls a function regularly, from `__enter__` to `__exit__`, or until the function returns False.

    An error of the function is ignored: the database may be away, or may not be migrated.

    Args:
        look: the function. It returns whether it must be called again.
        seconds: the pause between two calls.
        name: the name of the thread.
    """

    def __init__(self, look: Callable[[], bool], seconds: float, name: str) -> None:
        self._look, self._seconds = look, seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> BackgroundLook:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()

    def _run(self) -> None:
        again = True
        while again and not self._stop.is_set():
            with suppress(Exception):
                again = self._look()
            with suppress(Exception):
                connections.close_all()  # those of this thread
            self._stop.wait(self._seconds)
