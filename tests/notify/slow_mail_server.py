"""A mail server for tests that sends one byte now and then."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread


@dataclass
class SlowMailServer:
    """How the server answers, and what it has got.

    Args:
        slow: the command whose answer comes byte by byte and never ends, such as `RCPT`; `CONNECT` for the greeting;
            empty for none.
        commands: the first four letters of each line that it has got outside of a message.
        ended: is set when a connection on which it sent byte by byte has ended.
    """

    slow: str = ""
    port: int = 0
    commands: list[str] = field(default_factory=list)
    ended: Event = field(default_factory=Event)
    stopped: Event = field(default_factory=Event)

    def serve(self, server: socket.socket) -> None:
        """Take connections until the server is closed."""
        with suppress(OSError):
            while True:
                client, _address = server.accept()
                Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        with suppress(OSError), client, client.makefile("rb") as lines:
            self._answer(client, "CONNECT", b"220 here")
            in_message = False
            for line in lines:
                if in_message and line != b".\r\n":
                    continue
                name = "DOT" if in_message else line[:4].decode().strip().upper()
                self.commands.append(name)
                in_message = name == "DATA"
                self._answer(client, name, b"354 go on" if in_message else b"250 fine")

    def _answer(self, client: socket.socket, name: str, line: bytes) -> None:
        if name != self.slow:
            client.sendall(line + b"\r\n")
            return
        try:
            while not self.stopped.wait(0.05):
                client.sendall(b"2")
        finally:
            self.ended.set()


@contextmanager
def slow_mail_server() -> Iterator[SlowMailServer]:
    """Run a server on a free port of this machine until the end of the `with` block."""
    found = SlowMailServer()
    with socket.create_server(("127.0.0.1", 0)) as server:
        found.port = server.getsockname()[1]
        Thread(target=found.serve, args=(server,), daemon=True).start()
        try:
            yield found
        finally:
            found.stopped.set()
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
