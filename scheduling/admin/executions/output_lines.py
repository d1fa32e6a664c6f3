"""Filter lines of output by level and text, and show them as HTML with search hits marked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from scheduling.admin.ui.text import is_number
from scheduling.core.text import visible_text
from scheduling.models.output import CUT

LEVELS = {"DEBUG": 10, "INFO": 20, "OUT": 20, "SUCCESS": 25, "WARN": 30, "ERROR": 40, "NOTE": 100}
"""The rank of each level. OUT is the output of `print`. NOTE is a note of the consumer, and no level hides it."""

CHOICES = [("", _("all")), ("info", _("INFO and above")), ("warn", _("WARN and above")), ("error", _("ERROR"))]
"""The choices for the lowest level to show. Each choice is a pair: the level's name in a URL, and the level's label."""

TERM_LIMIT = 200
"""The maximum length of a search term. A longer search term is cut."""

MARK = "<mark>{}</mark>"

_LINE = re.compile(r"(\d{4}-\d\d-\d\dT(\d\d:\d\d:\d\d\.\d+)Z) ([A-Z]{3,8}) ?(.*)", re.DOTALL)
_LEVEL = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z ([A-Z]{3,8})(?: |$)")


@dataclass(frozen=True)
class Wanted:
    """Which lines of the output a request asks for.

    Args:
        attempt: the attempt's number; None for all attempts.
        level: the lowest level to show, in lower case; empty for all levels.
        term: text that a line must contain; empty for all lines. Upper and lower case do not matter.
    """

    attempt: int | None = None
    level: str = ""
    term: str = ""

    @classmethod
    def of(cls, query: Any) -> Wanted:
        """The lines that the query string of a URL asks for. Malformed values are ignored."""
        number, level = query.get("attempt", ""), query.get("level", "")
        return cls(
            attempt=int(number) if is_number(number, 9) else None,
            level=level if level in dict(CHOICES) else "",
            term=query.get("q", "").strip()[:TERM_LIMIT],
        )

    @property
    def narrow(self) -> bool:
        """Whether a level or a search term leaves out lines."""
        return bool(self.level or self.term)

    def takes(self, line: str) -> bool:
        """Whether a stored line has a wanted level and contains the search term."""
        if self.term and self.term.lower() not in line.lower():
            return False
        if not self.level:
            return True
        found = _LEVEL.match(line)
        return LEVELS.get(found[1] if found else "OUT", LEVELS["OUT"]) >= LEVELS[self.level.upper()]


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
