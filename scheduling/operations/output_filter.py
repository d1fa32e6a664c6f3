"""Which lines of an execution's output are wanted: those of an attempt, of a level, or with a text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from scheduling.core.text import is_number

LEVELS = {"DEBUG": 10, "INFO": 20, "OUT": 20, "SUCCESS": 25, "WARN": 30, "ERROR": 40, "NOTE": 100}
"""The rank of each level. OUT is the output of `print`. NOTE is a note of the consumer, and no level hides it."""

CHOICES = [("", _("all")), ("info", _("INFO and above")), ("warn", _("WARN and above")), ("error", _("ERROR"))]
"""The choices for the lowest level to show. Each choice is a pair: the level's name in a URL, and the level's label."""

TERM_LIMIT = 200
"""The maximum length of a search term. A longer search term is cut."""

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
