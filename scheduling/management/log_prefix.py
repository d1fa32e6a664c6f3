"""Puts the process's name before every line of output, because several processes write to one terminal."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

LONGEST_LINE = 64 * 1024
"""The maximum length of an unfinished line, in bytes. A longer line is written in pieces. Without this limit, a process
that never ends a line could fill the memory of `manage.py up`."""

_COLOURS = ("36", "33", "32", "35", "34", "31")
_OWN = "1"


class Stream(Protocol):
    """A text stream with the methods that this module uses. Django's wrapper of standard output is such a stream."""

    def write(self, text: str, /) -> object:
        """Write text."""

    def flush(self) -> object:
        """Write out buffered text."""

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""


def wants_colour(stream: Stream) -> bool:
    """Whether `stream` is a terminal with colours, and the variable NO_COLOR (no-color.org) does not forbid colours."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Prefixer:
    """Splits the output of several processes into lines and writes every line as `name | line`.

    Args:
        stream: receives the lines.
        names: the names of all processes. The longest name sets the width of the prefix.
        own: the name that `say` puts before its lines.
        colour: whether to colour the names with terminal escape codes.
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
        """Add `data` to the unfinished line of the process `name`. Write all complete lines, and keep the rest."""
        *lines, rest = (self._unfinished.pop(name, b"") + data).split(b"\n")
        if len(rest) >= LONGEST_LINE:
            lines.append(rest)
            rest = b""
        if rest:
            self._unfinished[name] = rest
        self._write("".join(self._line(name, line) for line in lines))

    def finish(self, name: str) -> None:
        """Write the unfinished last line of the process `name`. Call this when the output of the process has ended."""
        if rest := self._unfinished.pop(name, b""):
            self._write(self._line(name, rest))

    def say(self, text: str) -> None:
        """Write a line of `manage.py up` itself."""
        self._write(f"{self._prefixes[self._own]}{text}\n")

    def leave_line(self) -> None:
        """Begin a new line on a terminal, because the terminal has printed ^C at the cursor."""
        if self._stream.isatty():
            self._write("\n")

    def plain(self, text: str) -> None:
        """Write `text` as it is, without a prefix."""
        self._write(text if text.endswith("\n") else f"{text}\n")

    def _line(self, name: str, line: bytes) -> str:
        # Programs use a carriage return to redraw a line, such as a progress bar. A carriage return would overwrite the
        # prefix, so only the text after the last carriage return is written.
        text = line.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "replace")
        return f"{self._prefixes[name]}{text}\n"

    def _write(self, text: str) -> None:
        if not text:
            return
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        # The terminal may be gone (closed window, `| head`). The processes must then continue without a terminal.
        with suppress(OSError):
            self._stream.write(text.encode(encoding, "replace").decode(encoding))
            self._stream.flush()


def _prefix(name: str, width: int, colour: str) -> str:
    text = f"{name:<{width}} |"
    return f"\x1b[{colour}m{text}\x1b[0m " if colour else f"{text} "
