"""Ends a connection whose server does not answer a statement in time.

A server may be suspended, or its disk may hang, while its kernel still acknowledges every packet. Neither the driver
nor TCP notices this, and a statement would wait for ever. A limit in the server (`statement_timeout`) does not help,
because the server does nothing. So a thread of this process shuts the socket down. The statement then fails as if the
server had closed the connection.

Only producers, consumers and probes have such a limit: all their statements are short.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from types import TracebackType
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from scheduling.logs import get_logger
from scheduling.processes.lost_hosts import descriptor
from scheduling.processes.server_clock import elapsed_seconds

log = get_logger(__name__)


class AnswerLimit:
    """A context manager that limits how long each statement and each COMMIT of one connection may take.

    Args:
        connection: the connection of the calling thread. It may be closed and opened again meanwhile.
        seconds: the limit.
    """

    def __init__(self, connection: BaseDatabaseWrapper, seconds: float) -> None:
        self._connection, self._seconds = connection, seconds
        self._number = 0
        """Grows with each beginning and each end of a statement, so that the thread sees whether anything happened."""
        self._inside = False
        self._since = 0.0
        self._socket: int | None = None
        """The descriptor of the connection's socket. During a statement, mysqlclient tells it to no other thread."""
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> AnswerLimit:
        if self._connection.vendor != "sqlite":  # it has no server
            self._connection.execute_wrappers.append(self._execute)
            self._thread = threading.Thread(target=self._watch, name="answer-limit", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is None:
            return
        self._over.set()
        self._thread.join()
        with suppress(ValueError):
            self._connection.execute_wrappers.remove(self._execute)

    def _execute(self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:
        with suppress(AttributeError):  # another driver
            self._socket = descriptor(self._connection)
        self._note(inside=True)
        try:
            return execute(sql, params, many, context)
        finally:
            self._note(inside=False)

    def _note(self, *, inside: bool) -> None:
        self._since = elapsed_seconds()
        self._inside = inside
        self._number += 1

    def _waiting(self) -> bool:
        """Whether the process may be waiting for an answer.

        Django calls no wrapper for COMMIT and ROLLBACK. But its `autocommit` is off from the beginning of a transaction
        until the server has answered the COMMIT.
        """
        return self._inside or (self._connection.connection is not None and not self._connection.autocommit)

    def _watch(self) -> None:
        while not self._over.wait(min(self._seconds / 10, 1.0)):
            number = self._number
            if self._waiting() and elapsed_seconds() - self._since >= self._seconds:
                self._cut(number)

    def _cut(self, number: int) -> None:
        """Shut the socket down, unless the statement has ended: its descriptor may then belong to another file."""
        if self._socket is None:
            return
        with suppress(OSError):
            with closing(socket.socket(fileno=os.dup(self._socket))) as own:
                if number != self._number or not self._waiting():
                    return
                log.warning("The database has not answered for %.0f s; its connection is closed", self._seconds)
                own.shutdown(socket.SHUT_RDWR)
            self._since = elapsed_seconds()
