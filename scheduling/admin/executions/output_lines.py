"""Shows lines of output as HTML with search hits marked."""

from __future__ import annotations

import re

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from scheduling.core.text import visible_text
from scheduling.models.output import CUT
from scheduling.operations.output_filter import LEVELS, Wanted

MARK = "<mark>{}</mark>"

_LINE = re.compile(r"(\d{4}-\d\d-\d\dT(\d\d:\d\d:\d\d\.\d+)Z) ([A-Z]{3,8}) ?(.*)", re.DOTALL)


def lines_html(lines: list[str], wanted: Wanted) -> SafeString:
    """Stored lines as HTML, one element for each line, with search hits marked."""
    term = re.compile(f"({re.escape(visible_text(wanted.term))})", re.IGNORECASE) if wanted.term else None
    return format_html_join(
        "",
        '<span class="sch-line sch-level-{}"><span class="sch-at" title="{}">{}</span> <b>{}</b>{}\n</span>',
        [_parts(line, term) for line in lines],
    )


def _parts(line: str, term: re.Pattern[str] | None) -> tuple[str, str, str, str, str]:
    match = _LINE.fullmatch(line)
    if match is None:
        return "out", "", "", "", _marked(visible_text(line), term)
    stamp, clock, level, text = match.groups()
    css = level.lower() if level in LEVELS else "out"
    if level == "NOTE" and CUT in text:
        css = "note sch-cut"
    return css, stamp, clock, "" if level == "OUT" else f"{level} ", _marked(visible_text(text), term)


def _marked(text: str, term: re.Pattern[str] | None) -> str:
    if term is None:
        return text
    pieces = enumerate(term.split(text))  # every second piece is a hit
    return format_html_join(
        "", "{}", ((format_html(MARK, piece) if number % 2 else piece,) for number, piece in pieces)
    )
