"""An execution's stored output: its last lines, what came after a cursor, all of it as a download.

Chunks are immutable and keep their order (attempt, sequence), which is a unique index. So a reader
who says how far he has read is answered from there on, at a price that does not grow with what he
has read; and nothing here loads more than a few chunks at once, whatever was printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from django.db.models import Q
from django.utils.safestring import SafeString

from scheduling.admin.output_lines import Wanted, lines_html
from scheduling.models import Output

LINES = 2_000
CHARACTERS = 500_000
"""What a page, or one answer, shows at most; a single line may be 16,000 characters long."""

SEARCHED = 8_000_000
"""Characters that a page looks through for lines that are asked for, from the end."""
FOLLOWED = 2_000_000
"""The same for one answer to a reader who follows; he asks again at once."""

CHUNKS = 32
"""Read in one query."""

_CURSOR = re.compile(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})")


class Cursor(NamedTuple):
    """How far somebody has read: the next chunk, and where in its text the next line begins."""

    attempt: int = 0
    sequence: int = 0
    position: int = 0

    @classmethod
    def of(cls, text: str) -> Cursor:
        """From its text in an address; nonsense is the beginning."""
        found = _CURSOR.fullmatch(text) if text.isascii() else None
        return cls(*map(int, found.groups())) if found else cls()

    def __str__(self) -> str:
        return f"{self.attempt}.{self.sequence}.{self.position}"


class Chunk(NamedTuple):
    """One stored row."""

    attempt: int
    sequence: int
    text: str


@dataclass
class Shown:
    """Lines by attempt, and the cursor behind the last of them.

    `cut` says that lines are missing: earlier ones on a page, later ones in an answer. `unsearched`
    says that not all of the output was looked through.
    """

    groups: list[tuple[int, SafeString]] = field(default_factory=list)
    lines: int = 0
    cursor: Cursor = field(default_factory=Cursor)
    cut: bool = False
    unsearched: bool = False


def tail(execution_id: int, wanted: Wanted | None = None, limit: int = LINES) -> Shown:
    """The last lines. Chunks are read from the end until there are enough."""
    wanted, result = wanted or Wanted(), Shown()
    found: list[tuple[int, str]] = []
    characters = searched = 0
    for chunk in _backwards(execution_id, wanted.attempt):
        if result.cursor == Cursor():
            result.cursor = Cursor(chunk.attempt, chunk.sequence + 1)
        if searched > SEARCHED:
            result.unsearched = True
            break
        searched += len(chunk.text)
        for line in reversed(chunk.text.removesuffix("\n").split("\n")):
            if not wanted.takes(line):
                continue
            if len(found) >= limit or characters + len(line) > CHARACTERS:
                result.cut = True
                break
            found.append((chunk.attempt, line))
            characters += len(line)
        if result.cut:
            break
    result.lines, result.groups = len(found), _groups(reversed(found), wanted)
    return result


def after(execution_id: int, cursor: Cursor, wanted: Wanted | None = None) -> Shown:
    """The lines from the cursor on, as many as one answer holds."""
    wanted, result = wanted or Wanted(), Shown(cursor=cursor)
    found: list[tuple[int, str]] = []
    characters = searched = 0
    chunks = forwards(execution_id, cursor, wanted.attempt)
    for chunk in chunks:
        place = cursor.position if chunk[:2] == cursor[:2] else 0
        for line in chunk.text[place:].removesuffix("\n").split("\n") if place < len(chunk.text) else ():
            takes = wanted.takes(line)
            full = len(found) >= LINES or (found and takes and characters + len(line) > CHARACTERS)
            if full or searched > FOLLOWED:
                result.cut = True
                break
            place += len(line) + 1
            searched += len(line) + 1
            if takes:
                found.append((chunk.attempt, line))
                characters += len(line)
        if result.cut:
            result.cursor = Cursor(chunk.attempt, chunk.sequence, place)
            break
        result.cursor = Cursor(chunk.attempt, chunk.sequence + 1)
    else:
        result.cut = len(chunks) == CHUNKS
    result.lines, result.groups = len(found), _groups(found, wanted)
    return result


def forwards(execution_id: int, cursor: Cursor, attempt: int | None = None) -> list[Chunk]:
    """The next chunks, at most `CHUNKS`: a range of the index, or two."""
    rows = Output.objects.filter(execution=execution_id).order_by("attempt", "sequence")
    if attempt is not None:
        if cursor.attempt != attempt:
            cursor = Cursor(attempt)
        return _read(rows.filter(attempt=attempt, sequence__gte=cursor.sequence)[:CHUNKS])
    found = _read(rows.filter(attempt=cursor.attempt, sequence__gte=cursor.sequence)[:CHUNKS])
    if len(found) < CHUNKS:
        found += _read(rows.filter(attempt__gt=cursor.attempt)[: CHUNKS - len(found)])
    return found


def download(execution_id: int, attempt: int | None = None) -> Iterator[bytes]:
    """All that is stored, chunk by chunk; each attempt begins with a line that names it."""
    current, cursor = None, Cursor()
    while chunks := forwards(execution_id, cursor, attempt):
        for chunk in chunks:
            if chunk.attempt != current:
                current = chunk.attempt
                yield f"--- attempt {chunk.attempt} ---\n".encode()
            yield chunk.text.encode("utf-8", "replace")
        cursor = Cursor(chunks[-1].attempt, chunks[-1].sequence + 1)


def _backwards(execution_id: int, attempt: int | None) -> Iterator[Chunk]:
    rows = Output.objects.filter(execution=execution_id).order_by("-attempt", "-sequence")
    if attempt is not None:
        rows = rows.filter(attempt=attempt)
    earlier = rows
    while chunks := _read(earlier[:CHUNKS]):
        yield from chunks
        last = chunks[-1]
        earlier = rows.filter(Q(attempt=last.attempt, sequence__lt=last.sequence) | Q(attempt__lt=last.attempt))


def _read(rows: Iterable[Output]) -> list[Chunk]:
    return [Chunk(*values) for values in rows.values_list("attempt", "sequence", "text")]  # type: ignore[attr-defined]


def _groups(found: Iterable[tuple[int, str]], wanted: Wanted) -> list[tuple[int, SafeString]]:
    return [
        (number, lines_html([line for _number, line in lines], wanted))
        for number, lines in groupby(found, key=itemgetter(0))
    ]
