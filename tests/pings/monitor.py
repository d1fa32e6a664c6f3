"""A web server that stands for a monitor. It can hang, refuse, or lead elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from tests.notify.web_server import QuietHandler, web_server


@dataclass(frozen=True)
class Call:
    """One request that has arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass
class Monitor:
    """What has arrived, and how the server answers.

    Args:
        status: the status of each answer.
        location: where a redirect leads.
        hangs: answers wait until the event is set.
        drips: until the event is set, the answer comes as one byte now and then.
    """

    port: int = 0
    status: int = 200
    location: str = ""
    text: bytes = b"OK"
    hangs: threading.Event = field(default_factory=threading.Event)
    drips: threading.Event = field(default_factory=threading.Event)
    calls: list[Call] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.hangs.set()
        self.drips.set()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"


@contextmanager
def running(monitor: Monitor) -> Iterator[None]:
    """Run the server of a monitor on a free port of this machine."""

    class Handler(QuietHandler):
        def answer(self) -> None:
            parts = urlsplit(self.path)
            body = self.read_body()
            call = Call(self.command, parts.path, dict(parse_qsl(parts.query)), dict(self.headers), body)
            if not monitor.hangs.wait(60):
                return
            monitor.calls.append(call)
            self.wfile.write(
                f"HTTP/1.0 {monitor.status} OK\r\nX-Slow: ".encode() if not monitor.drips.is_set() else b""
            )
            while not monitor.drips.wait(0.02):
                self.wfile.write(b".")
            self.send_response(monitor.status)
            if monitor.location:
                self.send_header("Location", monitor.location)
            self.send_header("Content-Length", str(len(monitor.text)))
            self.end_headers()
            self.wfile.write(monitor.text)

        do_GET = do_POST = do_HEAD = answer

    with web_server(Handler) as monitor.port:
        try:
            yield
        finally:
            monitor.hangs.set()
            monitor.drips.set()
