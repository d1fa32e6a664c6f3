"""How many runs of a handler may run at once, and how many may start within a time, for all or for each key.

A run that finds no place waits, and says for what. Places are given in the order of arrival, for each key apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from scheduling.core import wait_sentences as say
from scheduling.core.text import visible_text

LONGEST_KEY = 200
MOST_STARTS = 1_000
"""The instants of so many starts are kept for each key, so `starts` is at most this."""

MOST_AT_ONCE = 1_000_000

LONGEST_SPAN = 86_400.0

KeyFunction = Callable[[Mapping[str, Any]], object]

UNUSABLE_KEY = "(no usable key)"
"""The key of runs whose key cannot be told. They wait for each other, so that none starts beside its own key."""


@dataclass(frozen=True)
class Limit:
    """A limit for the runs of a handler, over all machines.

    Args:
        at_once: so many runs at once; None: any number.
        starts: so many starts within `per` seconds, in any such span; None: any number.
        per: the length of the span in seconds.
        key: the name of a param, or a function of the params: the limit holds for each value apart. Empty: for all runs
            of the handler together.

    Raises:
        ValueError: a value is out of bounds; the sentence names it.
    """

    at_once: int | None = None
    starts: int | None = None
    per: float = 60.0
    key: str | KeyFunction = ""

    def __post_init__(self) -> None:
        if self.at_once is None and self.starts is None:
            raise ValueError("Limit needs at_once= or starts=.")
        for name, most in (("at_once", MOST_AT_ONCE), ("starts", MOST_STARTS)):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or not 1 <= value <= most):
                raise ValueError(f"Limit: {name} is a whole number from 1 to {most:,}, not {value!r:.50}.")
        number = isinstance(self.per, int | float) and not isinstance(self.per, bool)
        if not number or not 0.01 <= self.per <= LONGEST_SPAN:
            raise ValueError(f"Limit: per is a number of seconds from 0.01 to {LONGEST_SPAN:g}, not {self.per!r:.50}.")
        if not (isinstance(self.key, str) or callable(self.key)):
            raise ValueError(f"Limit: key is the name of a param or a function, not {self.key!r:.50}.")

    def key_of(self, params: Mapping[str, Any]) -> str:
        """The key of a run. It is `UNUSABLE_KEY` if there is none, the function raises, or the text is too long."""
        if self.key == "":
            return ""
        try:
            value = self.key(params) if callable(self.key) else params[self.key]
            text = value if isinstance(value, str) else repr(value)
        except Exception:  # the function is code of the project
            return UNUSABLE_KEY
        text = visible_text(" ".join(text.split()))
        return text if len(text) <= LONGEST_KEY else UNUSABLE_KEY

    def room(self, taken: int, started: Sequence[float], now: datetime, granted: int = 0) -> int:
        """How many more runs may start now.

        Args:
            taken: how many run or were let through.
            started: when the last ones started, in seconds since 1970, ascending.
            granted: how many of those taken were let through and have not started. Each may start at any time, so it
                has its start in every span until then.
        """
        places = math.inf if self.at_once is None else self.at_once - taken
        if self.starts is not None:
            places = min(places, self.starts - len(self.recent(started, now)) - granted)
        return max(0, MOST_STARTS if places == math.inf else int(places))

    def recent(self, started: Sequence[float], now: datetime) -> list[float]:
        """Those of the starts that are within the span.

        A start may lie in the future: the process that has noted it took its time later and was faster. What lies more
        than a span ahead is forgotten, because a clock was set back.
        """
        at = now.timestamp()
        return [start for start in started if abs(at - start) < self.per] if self.starts is not None else []

    def noted(self, started: Sequence[float], count: int, now: datetime) -> list[float]:
        """The starts with `count` new ones. Those that the span of no process needs any longer are left out."""
        if self.starts is None:
            return []
        at = now.timestamp()
        kept = [start for start in started if abs(at - start) < 2 * self.per]
        return sorted([*kept, *[at] * count])[-MOST_STARTS:]

    def next_start(self, started: Sequence[float], now: datetime) -> datetime | None:
        """When the span has room again; None if it has room now, or if there is no such limit."""
        recent = self.recent(started, now)
        if self.starts is None or len(recent) < self.starts:
            return None
        return datetime.fromtimestamp(recent[-self.starts], UTC) + timedelta(seconds=self.per)

    def lowered(self, at_once: object, starts: object) -> Limit:
        """The limit with the operators' numbers. They only lower it.

        What is no number from 1 on changes nothing: plain SQL can write any value.
        """
        at_once, starts = _lower(self.at_once, at_once, MOST_AT_ONCE), _lower(self.starts, starts, MOST_STARTS)
        return Limit(at_once, starts, self.per, self.key)

    def sentence(self, subject: str, key: str, taken: int, started: Sequence[float], now: datetime) -> str:
        """Why a run waits.

        Args:
            subject: the handler in a sentence, such as `the worker 'push'`.
        """
        runs = say.KEYED.format(subject=subject, key=repr(key)) if self.key != "" else subject
        following = self.next_start(started, now)
        if following is not None:
            facts = {"starts": self.starts, "seconds": f"{self.per:g}", "at": f"{following:%H:%M:%S}"}
            return say.WAITS_FOR_SPAN.format(subject=runs, **facts)
        if self.at_once is not None and taken >= self.at_once:
            return say.WAITS_FOR_PLACE.format(subject=runs, taken=taken, at_once=self.at_once)
        return say.WAITS_IN_LINE.format(subject=runs)


def limit_problem(limit: object) -> str:
    """Why the option `limit` of a handler cannot be used; empty if it can."""
    if limit is None or isinstance(limit, Limit):
        return ""
    return f"limit is a Limit, not {limit!r:.50}."


def _lower(own: int | None, given: object, most: int) -> int | None:
    known = [min(value, most) for value in (own, given) if type(value) is int and value >= 1]
    return min(known, default=None)
