"""Many children, one terminal: every line behind the name of who wrote it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Protocol

LONGEST_LINE = 64 * 1024
"""Bytes of a line without an end before it is shown anyway: nobody may fill the memory of the foreman."""

_COLOURS = ("36", "33", "32", "35", "34", "31")
_OWN = "1"


class Stream(Protocol):
    """What is needed of a text stream; Django's wrapper of standard output has it too."""

    def write(self, text: str, /) -> object:
        """Write text."""

    def flush(self) -> object:
        """Let nothing wait in a buffer."""

    def isatty(self) -> bool:
        """Whether it is a terminal."""


def wants_colour(stream: Stream) -> bool:
    """Whether escape codes on `stream` would be seen by a person (see no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Prefixer:
    """Cuts the bytes of several writers into lines and writes each as `name | line`.

    Args:
        stream: where the lines go.
        names: every writer, so that the bars stand in one column.
        own: the name under which `say` speaks.
        colour: paint the names with terminal escape codes.
    """

    def __init__(self, stream: Stream, names: Iterable[str], *, own: str, colour: bool) -> None:
        self._stream = stream
        names = list(names)
        width = max(len(name) for name in [*names, own])
        self._own = own
        self._unfinished: dict[str, bytes] = {}
        self._prefixes = {own: _prefix(own, width, _OWN if colour else "")}
        for index, name in enumerate(names):
            self._prefixes[name] = _prefix(name, width, _COLOURS[index % len(_COLOURS)] if colour else "")

    def feed(self, name: str, data: bytes) -> None:
        """Write the lines that `data` completes and keep what follows the last of them."""
        *lines, rest = (self._unfinished.pop(name, b"") + data).split(b"\n")
        if len(rest) >= LONGEST_LINE:
            lines.append(rest)
            rest = b""
        if rest:
            self._unfinished[name] = rest
        self._write("".join(self._line(name, line) for line in lines))

    def finish(self, name: str) -> None:
        """Write what `name` left without a line end: it will write no more."""
        rest = self._unfinished.pop(name, b"")
        if rest:
            self._write(self._line(name, rest))

    def say(self, text: str) -> None:
        """Write a line of our own."""
        self._write(f"{self._prefixes[self._own]}{text}\n")

    def leave_line(self) -> None:
        """Begin a new line on a terminal, which shows ^C where the cursor stands."""
        if self._stream.isatty():
            self._write("\n")

    def plain(self, text: str) -> None:
        """Write `text` as it is, without a prefix."""
        self._write(text if text.endswith("\n") else f"{text}\n")

    def _line(self, name: str, line: bytes) -> str:
        # A carriage return would paint over the prefix: of a line redrawn in place the last drawing is kept.
        text = line.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "replace")
        return f"{self._prefixes[name]}{text}\n"

    def _write(self, text: str) -> None:
        if not text:
            return
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        try:
            self._stream.write(text.encode(encoding, "replace").decode(encoding))
            self._stream.flush()
        except OSError:
            # The terminal is gone (closed window, `| head`). What runs matters more than what is shown of it.
            pass


def _prefix(name: str, width: int, colour: str) -> str:
    text = f"{name:<{width}} |"
    return f"\x1b[{colour}m{text}\x1b[0m " if colour else f"{text} "
