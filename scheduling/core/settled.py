"""What an edit or a pause leaves of the occurrences of a schedule with rules of its own that are not on record."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from scheduling.core import skip_reasons
from scheduling.core.assigned import Assigned
from scheduling.core.counted import Counted, add_all, counted_until, excluded_rows, held_row, missed_row
from scheduling.core.nominal import TICK
from scheduling.core.occurrences import Missed
from scheduling.core.planned import MOST_LOOKED_AT
from scheduling.core.timing import MissedRuns


@dataclass(frozen=True)
class Settled:
    """What an edit leaves of the occurrences that are not on record.

    Args:
        skips: those that do not run.
        kept: the latest one that was to run, and whose nominal instant has passed; None if there is none.
    """

    skips: tuple[Missed, ...]
    kept: datetime | None


def settle(own: Assigned, first: datetime, now: datetime, *, times_change: bool) -> Settled:
    """Decide what becomes of the occurrences up to now that are not on record, before an edit or a pause.

    The latest one that is free is kept. The next plan, or the record of the pause, begins with it. If the times stay,
    those that are excluded after it are left to them. If the times change, or if none is kept, the edit ends a hold:
    what was held does not run.
    """
    free, excluded, later = _until_now(own, first, now)
    if times_change or not free:
        add_all(excluded, later)
    if own.holds:
        skips = [held_row(own, counted, why, skip_reasons.HELD_EDITED) for why, counted in excluded.items()]
    else:
        skips = excluded_rows(own, excluded)
    kept = free[-1].last if free else None
    if kept is not None and (others := sum(counted.count for counted in free) - 1):
        before = own.times.last(free[0].first, kept - TICK) or free[0].first
        # With `ALL`, a producer would have let each of them run, so the edit is the reason.
        is_edit = own.at(before) > now or own.timing.missed_runs is MissedRuns.ALL
        why = skip_reasons.EDITED if is_edit else skip_reasons.NO_PRODUCER
        skips.append(missed_row(own, Counted(free[0].first, before, others), why))
    return Settled(tuple(skips), kept)


def _until_now(
    own: Assigned, first: datetime, now: datetime
) -> tuple[list[Counted], dict[str, Counted], list[tuple[str, Counted]]]:
    """The occurrences up to now: the free ones, the excluded ones before the last free one, and those after it."""
    free: list[Counted] = []
    excluded: dict[str, Counted] = {}
    later: list[tuple[str, Counted]] = []
    for number, stretch in enumerate(own.walk(first)):
        if stretch.first > now:
            break
        if stretch.why is not None and number < MOST_LOOKED_AT:
            later.append((stretch.why, counted_until(own, stretch.first, min(now, stretch.last or now))))
            continue
        add_all(excluded, later)
        later.clear()
        if number >= MOST_LOOKED_AT:
            free.append(counted_until(own, stretch.first, now))
            break
        free.append(Counted(stretch.first, stretch.first, 1))
    return free, excluded, later
