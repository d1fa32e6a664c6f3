"""Lines of output as they are shown: their level, what a reader asks for, and what was found marked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from django.utils.html import conditional_escape, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _

from scheduling.admin.text import shown
from scheduling.consumer.output import CUT

LEVELS = {"DEBUG": 10, "INFO": 20, "OUT": 20, "SUCCESS": 25, "WARN": 30, "ERROR": 40, "NOTE": 100}
"""Rank by name; a plain print counts as INFO, and the consumer's own notes are always shown."""

CHOICES = [("", _("all")), ("info", _("INFO and above")), ("warn", _("WARN and above")), ("error", _("ERROR"))]
"""What can be asked for: the least level, by its name in an address."""

TERM_LIMIT = 200
"""Characters of what is searched for."""

_LINE = re.compile(r"(\d{4}-\d\d-\d\dT(\d\d:\d\d:\d\d\.\d+)Z) ([A-Z]{3,8}) ?(.*)", re.DOTALL)
_LEVEL = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z ([A-Z]{3,8})(?: |$)")


@dataclass(frozen=True)
class Wanted:
    """What of the output somebody asked for.

    Args:
        attempt: one attempt; None for all.
        level: the least level, lower case; empty for all.
        term: text that a line must hold, whatever its case; empty for any.
    """

    attempt: int | None = None
    level: str = ""
    term: str = ""

    @classmethod
    def of(cls, query: Any) -> Wanted:
        """From a request's GET; what makes no sense there is left out."""
        number, level = query.get("attempt", ""), query.get("level", "")
        return cls(
            attempt=int(number) if number.isascii() and number.isdecimal() and len(number) < 10 else None,
            level=level if level in dict(CHOICES) else "",
            term=query.get("q", "").strip()[:TERM_LIMIT],
        )

    @property
    def narrow(self) -> bool:
        """Whether lines are left out."""
        return bool(self.level or self.term)

    def takes(self, line: str) -> bool:
        """Whether a stored line is asked for."""
        if self.term and self.term.lower() not in line.lower():
            return False
        if not self.level:
            return True
        found = _LEVEL.match(line)
        return LEVELS.get(found[1] if found else "OUT", LEVELS["OUT"]) >= LEVELS[self.level.upper()]


def lines_html(lines: list[str], wanted: Wanted) -> SafeString:
    """Stored lines as elements, one each, with what was searched for marked."""
    term = re.compile(re.escape(shown(wanted.term)), re.IGNORECASE) if wanted.term else None
    return format_html_join(
        "",
        '<span class="sch-line sch-level-{}"><span class="sch-at" title="{}">{}</span> <b>{}</b>{}\n</span>',
        [_parts(line, term) for line in lines],
    )


def _parts(line: str, term: re.Pattern[str] | None) -> tuple[str, str, str, str, str]:
    match = _LINE.fullmatch(line)
    if match is None:
        return "out", "", "", "", _marked(shown(line), term)
    stamp, clock, level, text = match.groups()
    css = level.lower() if level in LEVELS else "out"
    if level == "NOTE" and CUT in text:
        css = "note sch-cut"
    return css, stamp, clock, "" if level == "OUT" else f"{level} ", _marked(shown(text), term)


def _marked(text: str, term: re.Pattern[str] | None) -> str:
    if term is None:
        return text
    parts, end = list[str](), 0
    for found in term.finditer(text):
        parts += [conditional_escape(text[end : found.start()]), "<mark>", conditional_escape(found[0]), "</mark>"]
        end = found.end()
    return mark_safe("".join([*parts, conditional_escape(text[end:])]))  # noqa: S308 - escaped piece by piece
