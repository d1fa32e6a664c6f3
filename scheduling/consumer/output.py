"""Turns the bytes that a run prints into lines that begin with a time. The stored text has a size limit.

The beginning of the output is stored while the run prints, until it fills the first half of the limit. The end of the
output is stored when the attempt ends, and may fill the second half. One line marks the place where the first half is
full. Another line, between the halves, says how much output was left out. To save memory, the end of the output is kept
as raw bytes and formatted only when the attempt ends.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable

from scheduling.consumer.child import LEVEL_MARK
from scheduling.logs import iso_from_epoch
from scheduling.models.output import CUT

LINE_LIMIT = 16_384
"""The maximum length of a line in bytes. A longer line is stored as several lines."""

_MARKED = re.compile(f"{LEVEL_MARK}([A-Z]{{3,8}}){LEVEL_MARK}(.*)", re.DOTALL)

Echo = Callable[[str, str], None]
"""Called with the level and the text of each line of the first half, so that the supervisor can log the line."""


class OutputBuffer:
    """Collects one attempt's output.

    Args:
        limit: bytes of stored text to keep.
        echo: receives each line of the first half.
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
        """How many characters are ready to be stored."""
        return self._ready_bytes

    def feed(self, data: bytes, now: float) -> None:
        """Add bytes of output. `now` is the time in epoch seconds."""
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
        """Add a line from the supervisor, for example how the process ended."""
        self._append(f"{iso_from_epoch(now)} NOTE {text}\n")

    def take(self) -> str:
        """Take the text that is ready to be stored; empty if no text is ready."""
        text = "".join(self._ready)
        self._ready.clear()
        self._ready_bytes = 0
        return text

    def finish(self, now: float) -> str:
        """Take the remaining text: an unfinished line, the note about missing output, and the second half."""
        if self._partial:
            self._keep(bytes(self._partial), now)
            self._partial = bytearray()
        if self._dropped_bytes:
            dropped = f"{self._dropped_bytes} bytes ({self._dropped_lines} lines)"
            self.note(f"... {dropped} {CUT}: the output is longer than is kept ...", now)
            # `finish` may be called again, because a refused settle is tried again. The note must not appear twice.
            self._dropped_bytes = self._dropped_lines = 0
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
        # PostgreSQL refuses NUL in text. Other control characters are stored unchanged and escaped on the pages.
        text = line.decode("utf-8", "replace").replace("\x00", "\ufffd").rstrip("\r")
        marked = _MARKED.match(text)
        level, bare = marked.groups() if marked else ("OUT", text)
        return f"{iso_from_epoch(now)} {level} {bare}\n", level, bare

    def _feed_tail(self, data: bytes, now: float) -> None:
        if not self._tail:
            self.note("... what is printed from here on is stored when the attempt ends ...", now)
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
