"""A chat service for tests: a web server on this machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.notify.web_server import QuietHandler, web_server


@dataclass
class ChatServer:
    """What arrived, and how the server answers.

    Args:
        arrived: the path, the headers and the body of each request.
        answers: maps a part of a path to the status of the answer. Other requests get `status`.
        echo: whether the answer repeats the path and all headers of the request.
        silence: how many seconds the server waits before each answer.
        drip: how many seconds the server waits before each byte of the answer.
    """

    port: int = 0
    status: int = 200
    body: bytes = b"ok"
    headers: dict[str, str] = field(default_factory=dict)
    answers: dict[str, int] = field(default_factory=dict)
    echo: bool = False
    silence: float = 0.0
    drip: float = 0.0
    arrived: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def at(self, path: str) -> list[bytes]:
        """Return the bodies of the requests to one path."""
        return [body for found, _headers, body in self.arrived if found == path]

    def answer(self, path: str, headers: Any) -> bytes:
        """Return the whole answer, as it goes over the wire."""
        status = next((status for part, status in self.answers.items() if part in path), self.status)
        body = f"{path}\n{headers}".encode() if self.echo else self.body
        lines = {"Content-Length": str(len(body)), "Connection": "close", **self.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"HTTP/1.1 {status} Answer\r\n{head}\r\n".encode() + body


@contextmanager
def chat_server() -> Iterator[ChatServer]:
    """Run a server on a free port of this machine until the end of the `with` block."""
    found = ChatServer()

    class Handler(QuietHandler):
        def receive(self) -> None:
            body = self.read_body()
            found.arrived.append((self.path, dict(self.headers), body))
            time.sleep(found.silence)
            answer = found.answer(self.path, self.headers)
            step = 1 if found.drip else len(answer)
            try:
                for start in range(0, len(answer), step):
                    self.wfile.write(answer[start : start + step])
                    time.sleep(found.drip)
            except OSError:
                pass  # the client has given up
            self.close_connection = True

        do_GET = do_POST = do_PUT = receive

    with web_server(Handler) as found.port:
        yield found
