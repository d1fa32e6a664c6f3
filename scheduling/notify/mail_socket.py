"""The sockets of a connection to a mail server, so that a deadline can end them."""

from __future__ import annotations

import smtplib
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

Watch = Callable[[socket.socket], None]


def watch(connection: Any, deadline: Watch) -> None:
    """Let the deadline have the open socket of a mail connection, and each socket that it opens later.

    A mail backend that has no class of smtplib, such as one for files or of a third party, stays as it is.

    Args:
        connection: a mail backend of Django.
        deadline: is called with each socket. It takes the place of the one before.
    """
    client = getattr(connection, "connection_class", None)
    if not (isinstance(client, type) and issubclass(client, smtplib.SMTP)):
        return
    if not issubclass(client, _Watched):
        backend = type(connection)
        # smtplib waits for the greeting while it makes its object, so no attribute leads to the socket until then.
        connection.__class__ = type(backend.__name__, (backend,), {"connection_class": _watched(client)})
        client = connection.connection_class
    client.deadline = deadline
    for name in ("connection", "_partial_connection"):  # Django keeps the second while it logs in
        found = getattr(getattr(connection, name, None), "sock", None)
        if isinstance(found, socket.socket):
            with suppress(OSError):  # it is closed
                deadline(found)


class _Watched:
    """Marks a class of smtplib whose sockets are watched."""

    deadline: Watch


def _watched(client: type[smtplib.SMTP]) -> type[smtplib.SMTP]:
    class Client(client, _Watched):  # type: ignore[misc, valid-type]
        def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
            found: socket.socket = super()._get_socket(host, port, timeout)
            type(self).deadline(found)
            return found

    return Client
