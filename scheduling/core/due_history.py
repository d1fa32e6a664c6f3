"""Which instants a schedule was due at, by the revisions that it has had."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from scheduling.core.due_between import due_between
from scheduling.core.occurrence_audit import Need, micros

_TICK = timedelta(microseconds=1)
TIMES = ("schedule", "date_time", "active_from", "active_until")
"""The keys of a state that say when the schedule is due, beside its zone."""


@dataclass(frozen=True, slots=True)
class Times:
    """The times of a schedule from an instant on.

    Args:
        number: the number of the revision.
        at: they hold for the occurrences after this instant.
        state: the state of a `core.revisions.Snapshot`.
        zone: the zone in which the schedule runs.
        is_active: whether it was not paused, and not deleted.
        unsure_from: from this instant to `at`, the former times or these ones may have been used. None: no such.
    """

    number: int
    at: datetime
    state: Mapping[str, Any]
    zone: str
    is_active: bool
    unsure_from: datetime | None = None

    def due(self, after: datetime, until: datetime) -> Iterator[int]:
        """The instants in (after, until] at which it is due. There is none if the times cannot be used."""
        try:
            for instant in due_between(self.state, self.zone, after, until):
                yield micros(instant)
        except (ValueError, TypeError):
            return


def expected(history: Sequence[Times], after: datetime, until: datetime) -> Iterator[tuple[int, Need]]:
    """The instants in (after, until] at which a row may be, ascending, and whether there must be one.

    Args:
        history: the times that the schedule has had, ascending. The first ones hold at `after`.
    """
    late = list(_late_dates(history, after, until))
    usual = _chained(_of_span(history, index, after, until) for index in range(len(history)))
    last = -1
    for instant, need in heapq.merge(late, usual) if late else usual:
        if instant != last:
            yield instant, need
        last = instant


def last_counted(history: Sequence[Times], times: Times, first: datetime, count: int) -> int:
    """The last one of `count` due instants from `first` on, by these times; `first` if it is the only one.

    The schedule may have got these times after `first`. Then the edit has kept this occurrence alone, and the others
    are later than the edit.
    """
    last, begin = micros(first), max(first, _since(history, times))
    found = times.due(begin, begin + timedelta(days=36_600))
    for _number in range(count - 1):
        following = next(found, None)
        if following is None:
            break
        last = following
    return last


def _since(history: Sequence[Times], times: Times) -> datetime:
    """Since when a schedule has the times of a revision. A revision may change other columns only."""
    since = times.at
    for former in reversed([one for one in history if one.number < times.number]):
        if any(former.state.get(key) != times.state.get(key) for key in TIMES) or former.zone != times.zone:
            break
        since = former.at
    return since


def _chained(parts: Iterable[Iterator[tuple[int, Need]]]) -> Iterator[tuple[int, Need]]:
    for part in parts:
        yield from part


def _of_span(history: Sequence[Times], index: int, after: datetime, until: datetime) -> Iterator[tuple[int, Need]]:
    """The instants for which these times hold. Near a later change they may have been replaced."""
    own, following = history[index], history[index + 1 :]
    start, end = max(own.at, after), min(following[0].at if following else until, until)
    if start >= end:
        return
    replaced = [times for times in following if times.unsure_from is not None and times.unsure_from <= end]
    edge = min((times.unsure_from - _TICK for times in replaced if times.unsure_from is not None), default=end)
    edge = min(max(edge, start), end)
    need = Need.MUST if own.is_active else Need.MAY
    for instant in own.due(start, edge):
        yield instant, need
    for instant in heapq.merge(*(times.due(edge, end) for times in (own, *replaced))) if edge < end else ():
        yield instant, Need.UNSURE


def _late_dates(history: Sequence[Times], after: datetime, until: datetime) -> Iterator[tuple[int, Need]]:
    """The dates that had passed when they were given. Only plain SQL can give such a date; it runs at once."""
    for former, times in pairwise(history):
        text = times.state.get("date_time")
        if text is None or text == former.state.get("date_time"):
            continue
        for instant in times.due(after, min(times.at, until)):
            yield instant, Need.UNSURE
