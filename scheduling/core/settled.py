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
from scheduling.core.zones import zone


@dataclass(frozen=True)
class Settled:
    """What an edit leaves of the occurrences that are not on record.

    Args:
        skips: those that do not run.
        kept: the latest one that was to run, and whose nominal instant has passed; None if there is none.
    """

    skips: tuple[Missed, ...]
    kept: datetime | None


def settle(
    own: Assigned, first: datetime, now: datetime, *, times_change: bool, following: Assigned | None = None
) -> Settled:
    """Decide what becomes of the occurrences up to now that are not on record, before an edit or a pause.

    The latest one that is free is kept. The next plan, or the record of the pause, begins with it. If the times stay,
    those that are excluded after it are left to them. If the times change, or if none is kept, the edit ends a hold:
    what was held does not run. An edit with `following` does not end a hold.

    Args:
        own: the former times and rules.
        following: the new rules of a schedule that stays active and has the occurrence `first` now, too. Then what is
            held waits on, or runs if the new rules do not exclude it any more. None: it has other times, or a pause
            begins.
    """
    free, excluded, later = _until_now(own, first, now)
    if following is not None and own.holds and later and not free and (held_on := _held_on(own, later, following, now)):
        return held_on
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


def _held_on(own: Assigned, held: list[tuple[str, Counted]], following: Assigned, now: datetime) -> Settled | None:
    """What is left of a hold that goes on, or that new rules end early. None: what was held is too old to run now."""
    (why, one), last = held[0], held[-1][1].last
    if (stretch := next(following.walk(one.first), None)) is not None and stretch.why is not None:
        return Settled((), one.first)
    if now - following.at(last) > following.timing.longest_wait:
        return None
    count = sum(counted.count for _why, counted in held) - 1
    if not count:
        return Settled((), last)
    others = Counted(one.first, own.times.last(one.first, last - TICK) or one.first, count)
    return Settled((held_row(own, others, why, skip_reasons.later_ran(last, zone(own.times.tz))),), last)


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
