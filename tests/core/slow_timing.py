"""A slow but simple implementation of spread, missed runs, bounds and calendars, which looks at each instant alone.

It shares no code with `scheduling.core`. The tests compare the results of the two implementations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

from hypothesis import strategies as st

from tests.core import brute

SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)


class Window(NamedTuple):
    """A time that the calendar excludes."""

    start: datetime
    until: datetime
    reason: str


@dataclass(frozen=True)
class Rules:
    """The rules of one schedule, as plain values."""

    expression: str
    tz: str
    number: int
    spread: int = 0
    each: bool = False
    missed: str = "latest"
    cap: int = 100
    within: int = 86_400
    hold: bool = False
    since: datetime | None = None
    until: datetime | None = None
    windows: Sequence[Window] = ()

    def blocked(self, instant: datetime) -> Window | None:
        return next((one for one in self.windows if one.start <= instant < one.until), None)

    def nominal(self, after: datetime, until: datetime) -> list[datetime]:
        """The nominal instants in (after, until]."""
        found = brute.fires(self.expression, self.tz, after, until)
        return [
            one
            for one in found
            if (self.since is None or one >= self.since) and (self.until is None or one <= self.until)
        ]

    def offset(self, nominal: datetime, room: timedelta) -> timedelta:
        text, window = f"spread:{self.number}", timedelta(seconds=self.spread)
        if self.each:
            text, window = f"{text}:{int(nominal.timestamp())}", min(window, room)
        digest = int.from_bytes(sha256(text.encode()).digest()[:8], "big")
        return SECOND * (digest * int(window.total_seconds()) // 2**64)


class Event(NamedTuple):
    """What happens to occurrences at an instant: the last of them runs, or none does."""

    at: datetime
    members: tuple[datetime, ...]
    runs: bool
    why: str = ""
    held: bool = False


def events(rules: Rules, nominal: Sequence[datetime]) -> Iterator[Event]:
    """The events of these occurrences in their order. Some more must follow after the last one that is wanted."""
    place = 0
    while place < len(nominal) - 1:
        first = nominal[place]
        window = rules.blocked(first)
        if window is None or not rules.hold:
            at = first + rules.offset(first, nominal[place + 1] - first)
            yield Event(at, (first,), window is None, "" if window is None else window.reason)
            place += 1
            continue
        end = window.until
        while (further := rules.blocked(end)) is not None:
            end = further.until
        members = tuple(one for one in nominal[place:] if one < end)
        place += len(members)
        if place >= len(nominal) - 1:
            return
        gives_way = nominal[place] == end
        start = nominal[place] if gives_way else members[-1]
        room = (nominal[place + 1] if gives_way else nominal[place]) - end
        yield Event(end + rules.offset(start, room), members, not gives_way, window.reason, held=True)


@dataclass
class Outcome:
    """What a producer does: the runs with their starts, the other occurrences by kind, and what follows."""

    runs: list[tuple[datetime, datetime]] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    undecided: datetime | None = None
    wakes_at: datetime | None = None


def outcome(rules: Rules, nominal: Sequence[datetime], now: datetime) -> Outcome:
    """What a producer does now, if none of these occurrences is on record."""
    found, due, todo = Outcome(), list[tuple[datetime, datetime]](), list(events(rules, nominal))
    while todo and todo[0].at <= now:
        event = todo.pop(0)
        if event.runs:
            due.append((event.members[-1], event.at))
        if event.held:
            found.skipped["held"] += len(event.members) - event.runs
        elif not event.runs:
            found.skipped["excluded"] += 1
    wait = timedelta(seconds=60 if rules.missed == "none" else rules.within)
    young = [one for one in due if now - one[1] <= wait]
    found.runs = young[-(rules.cap if rules.missed == "all" else 1) :]
    missed = len(due) - len(found.runs)
    if rules.missed == "all":
        found.skipped["too_late"] += len(due) - len(young)
        found.skipped["over_cap"] += len(young) - len(found.runs)
    else:
        kind = "not_caught_up" if rules.missed == "none" else "no_producer" if found.runs else "too_late"
        found.skipped[kind] += missed
    found.skipped = +found.skipped
    if todo:
        found.undecided = todo[0].members[0]
        found.wakes_at = next((event.at for event in todo if event.runs or event.held), None)
    return found


ZONES = ("UTC", "America/New_York", "Australia/Lord_Howe", "Europe/Dublin")


@st.composite
def rules(draw: st.DrawFn, begin: datetime) -> Rules:
    """Random rules, with windows in the days after `begin`."""
    each = draw(st.booleans())
    windows, at = list[Window](), begin
    for number in range(draw(st.integers(0, 4))):
        start = at + MINUTE * draw(st.sampled_from([0, 0, 17, 60, 600, 1500]))
        at = start + MINUTE * draw(st.sampled_from([1, 30, 60, 500, 1440, 2880]))
        windows.append(Window(start, at, f"reason {number % 2}"))
    missed = draw(st.sampled_from(["latest", "latest", "none", "all"]))
    return Rules(
        draw(brute.times), draw(st.sampled_from(ZONES)), draw(st.integers(1, 10**6)),
        spread=draw(st.sampled_from([0, 0, 1, 60, 1800, 7200, 86_400])), each=each, missed=missed,
        cap=draw(st.sampled_from([1, 3, 20, 1000])), within=draw(st.sampled_from([1, 600, 7200, 86_400, 10**6])),
        hold=draw(st.booleans()), windows=tuple(windows),
    )  # fmt: skip
