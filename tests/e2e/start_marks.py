"""The marks of runs (`tests.apps.sample.modelled`), and what the rules of the start model say of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from scheduling.core.pauses import Scope, WorkPause
from scheduling.core.run_limit import Limit


class Asked(NamedTuple):
    """A run that the test has asked for. `at` is in seconds since 1970, like all times here."""

    handler: str
    key: str
    queue: str
    at: float


class Span(NamedTuple):
    """One attempt. It has no end if its consumer was killed."""

    execution: int
    attempt: int
    begin: float
    end: float | None


class Paused(NamedTuple):
    """A pause that was committed between two times."""

    pause: WorkPause
    since: float
    until: float


AFTER_A_KILL = 1.0
"""A child works on for some milliseconds after its consumer was killed, and may begin only then. No attempt takes so
long."""


def spans(directory: Path, kills: Sequence[float]) -> list[Span]:
    """The attempts in the order of their begins. One that was killed ended when its consumer was killed.

    Args:
        kills: when each killed consumer was gone.
    """
    begins: dict[tuple[int, int], float] = {}
    ends: dict[tuple[int, int], float] = {}
    path = directory / "marks.txt"
    for line in path.read_text().splitlines() if path.exists() else ():
        word, execution, attempt, at, _pid = line.split()
        (begins if word == "begin" else ends)[int(execution), int(attempt)] = float(at)
    found = []
    for key, begin in begins.items():
        gone = min((at for at in kills if at >= begin - AFTER_A_KILL), default=None)
        found.append(Span(*key, begin, ends.get(key, None if gone is None else max(begin, gone))))
    return sorted(found, key=lambda span: span.begin)


def most_at_once(found: Iterable[Span]) -> int:
    """How many attempts there were at once, at most."""
    events = [(span.begin, 1) for span in found] + [(span.end, -1) for span in found if span.end is not None]
    most = now = 0
    for _at, change in sorted(events):
        now += change
        most = max(most, now)
    return most


def exceeded_spans(starts: Sequence[float], limit: Limit, tolerance: float) -> int:
    """How often more runs have started within the span of a limit than it allows.

    Args:
        tolerance: by so many seconds the span is shorter, because the clocks of processes differ.
    """
    if limit.starts is None:
        return 0
    ordered = sorted(starts)
    pairs = zip(ordered, ordered[limit.starts :], strict=False)
    return sum(later - earlier < limit.per - tolerance for earlier, later in pairs)


def paused_starts(
    found: Iterable[Span], asked: dict[int, Asked], pauses: Iterable[Paused], latency: float
) -> list[Span]:
    """The attempts that have begun in a pause, later than `latency` seconds after it was committed."""
    every = list(pauses)
    return [
        span
        for span in found
        for pause, since, until in every
        if since + latency < span.begin < until
        and pause.stops("worker", asked[span.execution].handler, asked[span.execution].queue)
    ]


def close_probes(found: Iterable[Span], openings: Iterable[tuple[float, float]], every: float, slack: float) -> int:
    """How many attempts of a handler followed another one too soon while its breaker was open.

    Args:
        openings: since when and until when it was open.
        every: the interval of probes in seconds.
    """
    begins = [span.begin for span in found]
    close = 0
    for since, until in openings:
        within = [at for at in begins if since + slack < at < until - slack]
        close += sum(later - earlier < every - slack for earlier, later in pairwise(within))
    return close


def longest_waits(found: Iterable[Span], asked: dict[int, Asked]) -> dict[tuple[str, str], float]:
    """For each handler and key, the longest time in seconds until the first begin of a run."""
    first: dict[int, float] = {}
    for span in found:
        first.setdefault(span.execution, span.begin)
    longest: dict[tuple[str, str], float] = defaultdict(float)
    for execution, one in asked.items():
        name = one.handler, one.key
        longest[name] = max(longest[name], first[execution] - one.at)
    return longest


def pause_of_scope(scope: str, name: str) -> WorkPause:
    """The rule of a pause of a worker, a queue or the site."""
    return WorkPause(Scope(scope), "worker" if scope == "handler" else "", name, "", "")
