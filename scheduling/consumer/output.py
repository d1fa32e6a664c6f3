"""Turns the bytes that a run prints into lines that begin with a time. The stored text has a size limit.

Half of the limit is for the beginning of the output, the other half for its end (`output_tail`). Both are stored while
the run prints. A line between the two halves says how much was left out. The limit counts the characters that are
stored, with the times.
"""

from __future__ import annotations

from collections.abc import Callable

from scheduling.consumer.output_lines import LINE_LIMIT, note_line, parts, stamped
from scheduling.consumer.output_tail import OutputTail
from scheduling.consumer.secret_filter import SecretFilter

NOTES_LENGTH = 400
"""How many characters of the limit are for the lines of the supervisor, and for the stamp of an unfinished line."""

Echo = Callable[[str, str], None]
"""Called with the level and the text of each line of the first half, so that the supervisor can log the line."""


class OutputBuffer:
    """Collects one attempt's output.

    Args:
        limit: the maximum number of characters to store, at least 1,000.
        echo: receives each line of the first half.
        secrets: masks secret parameters; None if the run has none.
    """

    def __init__(self, limit: int, echo: Echo | None = None, secrets: SecretFilter | None = None) -> None:
        self._secrets = secrets
        self._head_left = limit // 2
        self._tail_limit = limit - limit // 2 - NOTES_LENGTH
        self._echo = echo
        self._partial = bytearray()
        self._ready: list[str] = []
        self._ready_bytes = 0
        self.tail: OutputTail | None = None
        """The end of the output; None while the first half has room."""

    @property
    def waiting(self) -> int:
        """How many characters of the first half are ready to be stored."""
        return self._ready_bytes

    def masked(self, text: str) -> str:
        """The text with masked secret parameters."""
        return self._secrets.text(text) if self._secrets is not None else text

    def feed(self, data: bytes, now: float) -> None:
        """Add bytes of output. `now` is the time in epoch seconds."""
        self._add(self._secrets.feed(data) if self._secrets is not None else data, now)

    def _add(self, data: bytes, now: float) -> None:
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
        if self.tail is not None:
            self.tail.note(text, now)
        else:
            self._append(note_line(text, now))

    def take(self) -> str:
        """Take the text that is ready to be stored; empty if no text is ready."""
        text = "".join(self._ready)
        self._ready.clear()
        self._ready_bytes = 0
        return text

    def finish(self, now: float) -> str:
        """Take the remaining text of the first half, with an unfinished line. The tail gets its unfinished line, too.

        `finish` may be called again, because a refused settle is tried again.
        """
        if self._secrets is not None:
            self._add(self._secrets.rest(), now)
        rest, self._partial = bytes(self._partial), bytearray()
        if rest and not self._keep(rest, now):
            self._feed_tail(rest, now)
        if self.tail is not None:
            self.tail.flush(final=True)
        return self.take()

    def _keep(self, line: bytes, now: float) -> bool:
        """Add a line to the first half. Returns False if the half has no room; from then on it gets no more lines."""
        texts = [stamped(part, now) for part in parts(line)]
        length = sum(len(text) for text, _, _ in texts)
        if length > self._head_left:
            self._head_left = 0
            return False
        self._head_left -= length
        for text, level, bare in texts:
            self._append(text)
            if self._echo is not None:
                self._echo(level, bare)
        return True

    def _append(self, text: str) -> None:
        self._ready.append(text)
        self._ready_bytes += len(text)

    def _feed_tail(self, data: bytes, now: float) -> None:
        if self.tail is None:
            self.tail = OutputTail(self._tail_limit)
        self.tail.feed(data, now)
