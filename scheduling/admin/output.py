"""An execution's output: its last lines on the page, all of it as a download."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from django.db.models import QuerySet
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from scheduling.admin.text import shown
from scheduling.models import Output

LINES = 2_000
CHARACTERS = 500_000
"""What a page shows at most; a single line may be 16,000 characters long."""

LEVELS = {"DEBUG", "INFO", "SUCCESS", "WARN", "ERROR", "NOTE", "OUT"}

_LINE = re.compile(r"(\d{4}-\d\d-\d\dT(\d\d:\d\d:\d\d\.\d+)Z) ([A-Z]{3,8}) ?(.*)", re.DOTALL)


@dataclass
class Tail:
    """The last lines, by attempt; `cut` says that there are earlier ones."""

    groups: list[tuple[int, SafeString]] = field(default_factory=list)
    lines: int = 0
    cut: bool = False


def chunks(execution_id: int, attempt: int | None = None) -> QuerySet[Output]:
    """The stored chunks in the order in which they were written."""
    rows = Output.objects.filter(execution=execution_id).order_by("attempt", "sequence")
    return rows if attempt is None else rows.filter(attempt=attempt)


def tail(execution_id: int, attempt: int | None = None, limit: int = LINES) -> Tail:
    """Read chunks from the end until there are lines enough: a long history is not loaded to show its end."""
    found: dict[int, list[str]] = {}
    result, characters = Tail(), 0
    for number, text in chunks(execution_id, attempt).reverse().values_list("attempt", "text").iterator(chunk_size=8):
        for line in reversed(text.removesuffix("\n").split("\n")):
            if result.lines >= limit or characters + len(line) > CHARACTERS:
                result.cut = True
                break
            found.setdefault(number, []).append(line)
            result.lines += 1
            characters += len(line)
        if result.cut:
            break
    result.groups = [(number, _html(lines)) for number, lines in sorted(found.items())]
    return result


def _html(lines: list[str]) -> SafeString:
    rows = []
    for line in reversed(lines):
        match = _LINE.fullmatch(line)
        if match is None:
            rows.append(("out", "", "", "", shown(line)))
            continue
        stamp, clock, level, text = match.groups()
        known = level.lower() if level in LEVELS else "out"
        rows.append((known, stamp, clock, "" if level == "OUT" else f"{level} ", shown(text)))
    return format_html_join(
        "",
        '<span class="sch-line sch-level-{}"><span class="sch-at" title="{}">{}</span> <b>{}</b>{}\n</span>',
        rows,
    )


def download(execution_id: int, attempt: int | None = None) -> Iterator[bytes]:
    """All that is stored, chunk by chunk; each attempt begins with a line that names it."""
    current = None
    for number, text in chunks(execution_id, attempt).values_list("attempt", "text").iterator(chunk_size=8):
        if number != current:
            current = number
            yield f"--- attempt {number} ---\n".encode()
        yield text.encode("utf-8", "replace")
