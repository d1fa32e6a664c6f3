"""Ends the connections of a request or an e-mail when its time is over."""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import Lock, Timer


class ConnectionDeadline:
    """Shuts the watched connections down after a time, as a context manager.

    The time limit of a socket begins anew with each byte. So a server that sends one byte now and then could keep a
    connection and its thread for hours.
    """

    def __init__(self, seconds: float) -> None:
        self._timer = Timer(max(0.0, seconds), self._end)
        self._timer.daemon = True
        self._lock = Lock()
        self._watched: list[socket.socket] = []
        self.is_over = False

    def __enter__(self) -> ConnectionDeadline:
        self._timer.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._timer.cancel()
        with self._lock:
            for connection in self._watched:
                connection.close()
            self._watched.clear()

    def watch(self, connection: socket.socket) -> None:
        """End this connection, too. The TLS layer takes over the socket, so a copy of it is kept.

        Raises:
            OSError: the connection is closed.
        """
        # A socket of the TLS layer has no `dup`.
        copy = socket.fromfd(connection.fileno(), connection.family, connection.type)
        with self._lock:
            self._watched.append(copy)
        if self.is_over:
            self._end()

    def _end(self) -> None:
        self.is_over = True
        with self._lock:
            for connection in self._watched:
                with suppress(OSError):  # the server may have closed it
                    connection.shutdown(socket.SHUT_RDWR)
