"""Evaluates the alerts in a thread of a producer, a consumer or a web server, while this process holds the lease."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType

from django.db import DEFAULT_DB_ALIAS, connections

from scheduling.alerts.evaluator import Evaluator
from scheduling.conf import get_conf
from scheduling.database_options import connection_limits
from scheduling.logs import get_logger
from scheduling.processes.answer_limit import AnswerLimit
from scheduling.processes.database import DATABASE_ERRORS

log = get_logger(__name__)

STOP_SECONDS = 1.5
"""So long a process that stops waits for this thread. The thread gives the lease back within this time, unless the
database does not answer."""

HURRY_SECONDS = 2.0
"""The time before the next turn, if the database could not be reached."""

SHORTEST_ANSWER_SECONDS = 5.0
"""A statement has at least so long to answer."""


class Watcher:
    """A context manager that evaluates the alerts in a thread while it is open. Errors end a turn, never the thread.

    It does nothing if the setting CRON_ALERTS is off. It must be opened after the process has forked for the last time,
    because a thread does not live on in a fork.
    """

    def __init__(self) -> None:
        self._stop, self._wake = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="alerts", daemon=True)

    def __enter__(self) -> Watcher:
        if get_conf().alerts:
            try:
                self._thread.start()
            except RuntimeError as error:  # the process has no room for another thread
                log.error("The alerts are not evaluated in this process: %s", error)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        try:
            with impatient():
                evaluator = Evaluator(self._wake.set, self._stop.is_set)
                try:
                    self._work(evaluator)
                finally:
                    evaluator.close()
        except Exception:  # such as a setting that cannot be used
            log.exception("The alerts are not evaluated in this process")

    def _work(self, evaluator: Evaluator) -> None:
        every = get_conf().alerts_seconds
        while not self._stop.is_set():
            evaluator.turn()
            disconnect()
            # Not all processes ask at the same moment.
            seconds = HURRY_SECONDS if evaluator.hurries else every * random.uniform(0.9, 1.0)  # noqa: S311
            self._wait(evaluator, time.monotonic() + seconds)

    def _wait(self, evaluator: Evaluator, until: float) -> None:
        """Wait for the next turn. What is sent meanwhile is recorded at once."""
        while not self._stop.is_set() and (left := until - time.monotonic()) > 0:
            if self._wake.wait(left):
                self._wake.clear()
                if not self._stop.is_set():
                    evaluator.between()
                    disconnect()


@contextmanager
def impatient() -> Iterator[None]:
    """Limit the time of each connection and each statement of the calling thread."""
    connection = connections[DEFAULT_DB_ALIAS]
    shared = connection.settings_dict
    # All threads share this dictionary, so it is copied and not changed.
    options = {**connection_limits(shared["ENGINE"]), **shared.get("OPTIONS", {})}
    connection.settings_dict = {**shared, "OPTIONS": options}
    try:
        with AnswerLimit(connection, max(float(get_conf().alerts_seconds), SHORTEST_ANSWER_SECONDS)):
            yield
    finally:
        connection.settings_dict = shared


def disconnect() -> None:
    """Close the connections of this thread between two turns.

    Hundreds of processes may stand by, and a database server has room for fewer connections.
    """
    with suppress(*DATABASE_ERRORS):
        connections.close_all()
