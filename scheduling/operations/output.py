"""Read an execution's stored output: the last lines, the lines after a cursor, or the whole output as a download.

Output is stored in chunks that never change. A unique index orders the chunks by (attempt, sequence). A client sends a
cursor and gets only newer lines, so the cost of an answer does not grow with the output. At most `chunks_per_query`
chunks are in memory at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet

from scheduling.core.text import visible_text
from scheduling.logs import get_logger
from scheduling.models import Output
from scheduling.operations.output_filter import Wanted

log = get_logger(__name__)

_CURSOR = re.compile(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})")


class OutputLimits:
    """Limits for one page, one answer to a client that follows the output, and one query."""

    shown_lines = 2_000
    """The maximum number of lines on a page, or in one answer to a client that follows the output."""
    shown_characters = 500_000
    """The maximum number of characters on a page or in one answer. A single line may have 16,000 characters."""
    page_search_characters = 8_000_000
    """A page searches at most about this many characters, backwards from the end of the output."""
    answer_search_characters = 2_000_000
    """One answer searches at most about this many characters. If characters are left, the client asks again at once."""
    chunks_per_query = 32


class Cursor(NamedTuple):
    """How far a client has read: the next chunk, and the position in that chunk's text where the next line begins."""

    attempt: int = 0
    sequence: int = 0
    position: int = 0

    @classmethod
    def of(cls, text: str) -> Cursor:
        """The cursor that a URL holds as text. Malformed text gives the beginning of the output."""
        found = _CURSOR.fullmatch(text) if text.isascii() else None
        return cls(*map(int, found.groups())) if found else cls()

    def __str__(self) -> str:
        return f"{self.attempt}.{self.sequence}.{self.position}"


@dataclass
class Lines:
    """Lines of output, and the cursor after the last line.

    `groups` has a pair for each attempt: the attempt's number, and its lines as they are stored: an instant, a level
    and the text. `cut` says that lines are missing. In the answer of `tail`, earlier lines are missing. In the answer
    of `after`, later lines are missing. `unsearched` says that only a part of the output was searched.
    """

    groups: list[tuple[int, list[str]]] = field(default_factory=list)
    cursor: Cursor = field(default_factory=Cursor)
    cut: bool = False
    unsearched: bool = False


def tail(execution_id: int, wanted: Wanted | None = None, limit: int = OutputLimits.shown_lines) -> Lines:
    """The last lines. Chunks are read from the end until enough lines are found."""
    wanted, result = wanted or Wanted(), Lines()
    found: list[tuple[int, str]] = []
    characters = searched = 0
    for chunk in _backwards(execution_id, wanted.attempt):
        if result.cursor == Cursor():
            result.cursor = Cursor(chunk.attempt, chunk.sequence + 1)
        if searched > OutputLimits.page_search_characters:
            result.unsearched = True
            break
        searched += len(chunk.text)
        for line in reversed(chunk.text.removesuffix("\n").split("\n")):
            if not wanted.takes(line):
                continue
            if len(found) >= limit or characters + len(line) > OutputLimits.shown_characters:
                result.cut = True
                break
            found.append((chunk.attempt, line))
            characters += len(line)
        if result.cut:
            break
    result.groups = _groups(reversed(found))
    return result


def after(execution_id: int, cursor: Cursor, wanted: Wanted | None = None, newest: int | None = None) -> Lines:
    """The lines that follow the cursor, up to the limits of one answer.

    Args:
        newest: the number of the newest attempt, if it is known. A reader of its output needs one query less.
    """
    wanted, result = wanted or Wanted(), Lines(cursor=cursor)
    found: list[tuple[int, str]] = []
    characters = searched = 0
    only = newest if wanted.attempt is None and cursor.attempt == newest else wanted.attempt
    chunks = forwards(execution_id, cursor, only)
    for chunk in chunks:
        place = cursor.position if chunk[:2] == cursor[:2] else 0
        for line in chunk.text[place:].removesuffix("\n").split("\n") if place < len(chunk.text) else ():
            takes = wanted.takes(line)
            full = found and takes and characters + len(line) > OutputLimits.shown_characters
            if full or len(found) >= OutputLimits.shown_lines or searched > OutputLimits.answer_search_characters:
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
        result.cut = len(chunks) == OutputLimits.chunks_per_query
    result.groups = _groups(found)
    return result


def forwards(execution_id: int, cursor: Cursor, attempt: int | None = None) -> list[Any]:
    """The next chunks from the cursor on, at most `chunks_per_query`, in the order of the index."""
    rows, limit = _chunks(execution_id).order_by("attempt", "sequence"), OutputLimits.chunks_per_query
    if attempt is not None and attempt != cursor.attempt:
        cursor = Cursor(attempt)
    found = list(rows.filter(attempt=cursor.attempt, sequence__gte=cursor.sequence)[:limit])
    if attempt is None and len(found) < limit:
        found += rows.filter(attempt__gt=cursor.attempt)[: limit - len(found)]
    return found


def download(execution_id: int, attempt: int | None = None) -> Iterator[bytes]:
    """The whole stored output, chunk by chunk. A line with the attempt's number precedes the output of each attempt.

    The answer has begun when a chunk is read. So a chunk that plain SQL has damaged cannot become an error page; a last
    line says why the rest is missing.
    """
    current, cursor = None, Cursor()
    try:
        while chunks := forwards(execution_id, cursor, attempt):
            for chunk in chunks:
                if chunk.attempt != current:
                    current = chunk.attempt
                    yield f"--- attempt {chunk.attempt} ---\n".encode()
                yield chunk.text.encode("utf-8", "replace")
            before, cursor = cursor, Cursor(chunks[-1].attempt, chunks[-1].sequence + 1)
            if cursor <= before or int(cursor.attempt) != cursor.attempt:
                raise ValueError(f"attempt {cursor.attempt!r}, part {chunks[-1].sequence!r}")
    except Exception as error:
        log.warning("The output of execution %s cannot be read to its end: %s", execution_id, error)
        reason = visible_text(f"{type(error).__name__}: {error}", 300)
        yield f"\n--- The rest cannot be read: {reason} ---\n".encode()


def _backwards(execution_id: int, attempt: int | None) -> Iterator[Any]:
    rows = _chunks(execution_id).order_by("-attempt", "-sequence")
    if attempt is not None:
        rows = rows.filter(attempt=attempt)
    earlier, last = rows, None
    while chunks := list(earlier[: OutputLimits.chunks_per_query]):
        yield from chunks
        if last is not None and chunks[-1][:2] >= last[:2]:
            return  # SQLite stores any number as an attempt; a query by such a number finds the same rows again
        last = chunks[-1]
        earlier = rows.filter(Q(attempt=last.attempt, sequence__lt=last.sequence) | Q(attempt__lt=last.attempt))


def _chunks(execution_id: int) -> QuerySet[Output, Any]:
    """Stored chunks as named tuples."""
    return Output.objects.filter(execution=execution_id).values_list("attempt", "sequence", "text", named=True)


def _groups(found: Iterable[tuple[int, str]]) -> list[tuple[int, list[str]]]:
    return [(number, [line for _number, line in lines]) for number, lines in groupby(found, key=itemgetter(0))]
