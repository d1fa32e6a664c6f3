"""The end of a long output. It is stored while the run prints, so that kill -9 loses the last half second at most.

The lines become chunks. Each chunk is a row that never changes. When the chunks exceed the limit, the oldest are
deleted, and one note in front of them counts what was left out.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from scheduling.consumer.output_lines import STAMP_LENGTH, note_line, parts, stamped
from scheduling.models.output import CHUNK_LIMIT, CUT

NOTE_SEQUENCE = 500_000_000
"""The sequence number of the note. It is higher than that of every row of the first half of the output."""

CHUNKS = 16
"""The limit is divided into at least so many chunks. So at least 15 of 16 parts of the limit are in use."""


@dataclass
class Chunk:
    """Some lines of the end of the output, and how many bytes and lines the run printed for them."""

    sequence: int
    texts: list[str] = field(default_factory=list)
    length: int = 0
    """How many characters the texts have, also after they were stored and forgotten."""
    size: int = 0
    lines: int = 0
    sent: bool = False
    stored: bool = False


class OutputTail:
    """Keeps the end of one attempt's output.

    Args:
        limit: the maximum number of characters to store, without the note.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._chunk_limit = limit, min(limit // CHUNKS, CHUNK_LIMIT)
        self._raw: deque[tuple[float, bytes, int]] = deque()
        """What was printed since the last flush, each piece with its time and its cost. It is limited, too: a run may
        print 100 MB between two flushes."""
        self._raw_cost = 0
        self._chunks: deque[Chunk] = deque()
        self._length = 0
        self._next = NOTE_SEQUENCE + 1
        self._noted = (-1, -1)
        self.dropped = (0, 0)
        """How many bytes and lines were left out."""

    def feed(self, data: bytes, now: float) -> None:
        """Add bytes of output. `now` is the time in epoch seconds."""
        self._keep(now, data)
        while self._raw_cost > self._limit:
            self._forget(len(self._chunks))  # they are older than what is left out now
            at, first, cost = self._raw.popleft()
            over = self._raw_cost - self._limit
            self._raw_cost -= cost
            self._drop(len(first), _lines(first, cost))
            # Dropping whole pieces is fast. A piece that makes up most of the output is shortened instead.
            if 2 * self._raw_cost <= self._limit and (kept := _end(first, cost - over)):
                self._drop(-len(kept), -kept.count(b"\n"))
                self._keep(at, kept, first=True)

    def flush(self, *, final: bool = False) -> None:
        """Turn the lines into chunks. An unfinished line waits for its end, unless this is the `final` flush."""
        carry, at = b"", 0.0
        for at, data, _ in self._raw:
            *lines, carry = (carry + data).split(b"\n")
            for line in lines:
                self._add(line, at, len(line) + 1, 1)
        self._raw.clear()
        self._raw_cost = 0
        if final and carry:
            self._add(carry, at, len(carry), 0)
        elif carry:
            self._keep(at, carry)

    def note(self, text: str, now: float) -> None:
        """Add a line from the supervisor."""
        self.flush(final=True)
        self._append(note_line(text, now), 0, 0)

    def unstored(self, now: float) -> list[tuple[int, str]]:
        """The rows that are not stored yet, as pairs of sequence number and text. The note may replace its row."""
        rows = [(chunk.sequence, "".join(chunk.texts)) for chunk in self._chunks if not chunk.stored]
        for chunk in self._chunks:
            chunk.sent = True
        return [(NOTE_SEQUENCE, self._note(now)), *rows] if self._noted != self.dropped else rows

    @property
    def first(self) -> int:
        """The lowest sequence number that is kept. The rows between the note and this number are to be deleted."""
        return self._chunks[0].sequence if self._chunks else self._next

    def mark_stored(self) -> None:
        """Forget the text that `unstored` returned last."""
        self._noted = self.dropped
        for chunk in self._chunks:
            if chunk.sent:
                chunk.stored = True
                chunk.texts.clear()

    def _note(self, now: float) -> str:
        size, lines = self.dropped
        if not size:
            return note_line("... from here on, only the end of the output is kept ...", now)
        return note_line(f"... {size} bytes ({lines} lines) {CUT}: the output is longer than is kept ...", now)

    def _keep(self, at: float, data: bytes, *, first: bool = False) -> None:
        cost = _cost(data)
        (self._raw.appendleft if first else self._raw.append)((at, data, cost))
        self._raw_cost += cost

    def _add(self, line: bytes, now: float, size: int, lines: int) -> None:
        for part in parts(line):
            self._append(stamped(part, now)[0], size, lines)
            size = lines = 0

    def _append(self, text: str, size: int, lines: int) -> None:
        chunk = self._chunks[-1] if self._chunks else None
        if chunk is None or chunk.sent or chunk.length + len(text) > self._chunk_limit:
            chunk = Chunk(self._next)
            self._chunks.append(chunk)
            self._next += 1
        chunk.texts.append(text)
        chunk.length += len(text)
        chunk.size += size
        chunk.lines += lines
        self._length += len(text)
        while self._length > self._limit and len(self._chunks) > 1:
            self._forget(1)

    def _forget(self, count: int) -> None:
        for _number in range(count):
            oldest = self._chunks.popleft()
            self._length -= oldest.length
            self._drop(oldest.size, oldest.lines)

    def _drop(self, size: int, lines: int) -> None:
        self.dropped = (self.dropped[0] + size, self.dropped[1] + lines)


def _cost(data: bytes) -> int:
    """At most how many characters the data takes as lines with their times."""
    return len(data) + STAMP_LENGTH * data.count(b"\n")


def _lines(data: bytes, cost: int) -> int:
    """How many lines end in data of this cost. To count them again takes longer."""
    return (cost - len(data)) // STAMP_LENGTH


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
