"""Turns the bytes that a run prints into lines that begin with a time. The stored text has a size limit.

Half of the limit is for the beginning of the output, which is stored while the run prints. The other half is for the
end of the output, which is stored when the attempt ends. One line marks where the first half is full. Another line,
between the two halves, says how much was left out. The limit counts the characters that are stored, with the times.
Memory is limited too: the end of the output is held as raw bytes and formatted only when the attempt ends.
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

STAMP_LENGTH = len("2026-03-10T12:00:00.000Z OUT ")
"""How many characters a line gets in front. A line with a level has the level's name among its own bytes."""

NOTES_LENGTH = 400
"""How many characters of the limit are for the lines of the supervisor, and for the stamp of an unfinished line."""

_MARKED = re.compile(f"{LEVEL_MARK}([A-Z]{{3,8}}){LEVEL_MARK}(.*)", re.DOTALL)

Echo = Callable[[str, str], None]
"""Called with the level and the text of each line of the first half, so that the supervisor can log the line."""


class OutputBuffer:
    """Collects one attempt's output.

    Args:
        limit: the maximum number of characters to store, at least 1,000.
        echo: receives each line of the first half.
    """

    def __init__(self, limit: int, echo: Echo | None = None) -> None:
        self._head_left = limit // 2
        self._tail_limit = limit - limit // 2 - NOTES_LENGTH
        self._echo = echo
        self._partial = bytearray()
        self._ready: list[str] = []
        self._ready_bytes = 0
        self._tail: deque[tuple[float, bytes]] = deque()
        self._tail_cost = 0
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
            if not self._keep(line, now):
                self._partial = bytearray()
                self._feed_tail(b"\n".join([*lines[index:], rest]), now)
                return
        while len(self._partial) > LINE_LIMIT:
            if not self._keep(bytes(self._partial[:LINE_LIMIT]), now):
                rest, self._partial = bytes(self._partial), bytearray()
                self._feed_tail(rest, now)
                return
            del self._partial[:LINE_LIMIT]

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
        rest, self._partial = bytes(self._partial), bytearray()
        if rest and not self._keep(rest, now):
            self._feed_tail(rest, now)
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

    def _keep(self, line: bytes, now: float) -> bool:
        """Add a line to the first half. Returns False if the half has no room; from then on it gets no more lines."""
        starts = range(0, max(len(line), 1), LINE_LIMIT)
        parts = [self._format(line[start : start + LINE_LIMIT], now) for start in starts]
        length = sum(len(text) for text, _, _ in parts)
        if length > self._head_left:
            self._head_left = 0
            return False
        self._head_left -= length
        for text, level, bare in parts:
            self._append(text)
            if self._echo is not None:
                self._echo(level, bare)
        return True

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
        self._tail.append((now, data))
        self._tail_cost += _cost(data)
        while self._tail_cost > self._tail_limit:
            at, first = self._tail.popleft()
            over = self._tail_cost - self._tail_limit
            # Dropping whole pieces is fast. A piece that makes up most of the tail is shortened instead.
            kept = b"" if 2 * (self._tail_cost - _cost(first)) > self._tail_limit else _end(first, _cost(first) - over)
            self._dropped_bytes += len(first) - len(kept)
            self._dropped_lines += first.count(b"\n") - kept.count(b"\n")
            self._tail_cost -= _cost(first) - _cost(kept)
            if kept:
                self._tail.appendleft((at, kept))


def _cost(data: bytes) -> int:
    """At most how many characters the data takes as lines with their times."""
    return len(data) + STAMP_LENGTH * data.count(b"\n")


def _end(data: bytes, limit: int) -> bytes:
    """The longest end of the data that costs at most `limit`."""
    low, high = 0, len(data)
    while low < high:
        middle = (low + high) // 2
        if _cost(data[middle:]) <= limit:
            high = middle
        else:
            low = middle + 1
    return data[low:]
