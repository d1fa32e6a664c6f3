"""A run's output: bytes from the pipe -> stamped lines, in chunks, with a bound.

Kept per attempt: the first half of the limit, stored as it comes, and the last half, stored at
the end; where the first one is full a line says so, for whoever follows, and between the two a line
says how much was left out. Memory stays bounded too: what may become the last half is held raw and
only formatted if it is kept.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable

from scheduling.consumer.child import LEVEL_MARK
from scheduling.logs import stamp

LINE_LIMIT = 16_384
"""Bytes; a longer line is stored as several."""

CUT = "left out here"
"""In the note that stands where output is missing; pages mark that line."""

_MARKED = re.compile(f"{LEVEL_MARK}([A-Z]{{3,8}}){LEVEL_MARK}(.*)", re.DOTALL)

Echo = Callable[[str, str], None]
"""Called with level and text of each stored line of the first part: the supervisor's own log."""


class OutputBuffer:
    """Collects one attempt's output.

    Args:
        limit: bytes to keep, of the text as it is stored.
        echo: receives each line while the first half fills.
    """

    def __init__(self, limit: int, echo: Echo | None = None) -> None:
        self._head_left = limit // 2
        self._tail_limit = limit - limit // 2
        self._echo = echo
        self._partial = bytearray()
        self._ready: list[str] = []
        self._ready_bytes = 0
        self._tail: deque[tuple[float, bytes]] = deque()
        self._tail_bytes = 0
        self._dropped_bytes = 0
        self._dropped_lines = 0

    @property
    def waiting(self) -> int:
        """Bytes that are ready to be stored."""
        return self._ready_bytes

    def feed(self, data: bytes, now: float) -> None:
        """Take bytes as they were read at `now` (epoch seconds)."""
        if self._head_left <= 0:
            self._feed_tail(data, now)
            return
        self._partial += data
        *lines, rest = bytes(self._partial).split(b"\n")
        self._partial = bytearray(rest)
        for index, line in enumerate(lines):
            if self._head_left <= 0:
                remainder = b"\n".join(lines[index:]) + b"\n" + rest
                self._partial = bytearray()
                self._feed_tail(remainder, now)
                return
            self._keep(line, now)
        while len(self._partial) > LINE_LIMIT and self._head_left > 0:
            self._keep(bytes(self._partial[:LINE_LIMIT]), now)
            del self._partial[:LINE_LIMIT]
        if self._head_left <= 0 and self._partial:
            rest, self._partial = bytes(self._partial), bytearray()
            self._feed_tail(rest, now)

    def note(self, text: str, now: float) -> None:
        """Add a line of the supervisor's own, such as how the process ended."""
        self._append(f"{stamp(now)} NOTE {text}\n")

    def take(self) -> str:
        """The text that is ready to be stored; empty when there is none."""
        text = "".join(self._ready)
        self._ready.clear()
        self._ready_bytes = 0
        return text

    def finish(self, now: float) -> str:
        """The rest: an unfinished line, the notice, the last part."""
        if self._partial:
            self._keep(bytes(self._partial), now)
            self._partial = bytearray()
        if self._dropped_bytes:
            self._append(
                f"{stamp(now)} NOTE ... {self._dropped_bytes} bytes ({self._dropped_lines} lines) {CUT}: "
                "the output is longer than is kept ...\n"
            )
        carry = b""
        for at, data in self._tail:
            *lines, carry = (carry + data).split(b"\n")
            for line in lines:
                self._append(self._format(line, at)[0])
        if carry and self._tail:
            self._append(self._format(carry, self._tail[-1][0])[0])
        self._tail.clear()
        return self.take()

    def _keep(self, line: bytes, now: float) -> None:
        for start in range(0, max(len(line), 1), LINE_LIMIT):
            text, level, bare = self._format(line[start : start + LINE_LIMIT], now)
            self._head_left -= len(text)
            self._append(text)
            if self._echo is not None:
                self._echo(level, bare)

    def _append(self, text: str) -> None:
        self._ready.append(text)
        self._ready_bytes += len(text)

    @staticmethod
    def _format(line: bytes, now: float) -> tuple[str, str, str]:
        # NUL is what PostgreSQL refuses in text; the rest is stored as it came and shown escaped.
        text = line.decode("utf-8", "replace").replace("\x00", "\ufffd").rstrip("\r")
        marked = _MARKED.match(text)
        level, bare = marked.groups() if marked else ("OUT", text)
        return f"{stamp(now)} {level} {bare}\n", level, bare

    def _feed_tail(self, data: bytes, now: float) -> None:
        if not self._tail:
            self._append(f"{stamp(now)} NOTE ... what is printed from here on is stored when the attempt ends ...\n")
        if len(data) > self._tail_limit:
            cut = data[: -self._tail_limit]
            self._dropped_bytes += len(cut)
            self._dropped_lines += cut.count(b"\n")
            data = data[-self._tail_limit :]
        self._tail.append((now, data))
        self._tail_bytes += len(data)
        while self._tail_bytes > self._tail_limit and len(self._tail) > 1:
            _, cut = self._tail.popleft()
            self._tail_bytes -= len(cut)
            self._dropped_bytes += len(cut)
            self._dropped_lines += cut.count(b"\n")
