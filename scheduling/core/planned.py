"""Plans a schedule with rules of its own: which occurrences run, which do not, and when the next one starts.

Where no calendar is asked, only the newest nominal instants are looked at one by one, and the others are counted. Where
a calendar is asked, the first `MOST_LOOKED_AT` stretches and the newest `MOST_LOOKED_AT` instants are looked at, and
what lies before them up to the newest that are free (`newest_runs`). Only if there are more, those between are told
together. So a plan takes some tens of milliseconds at most, also after years without a producer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from scheduling.core import skip_reasons
from scheduling.core.assigned import NEVER, Assigned, Wake
from scheduling.core.counted import (
    Counted,
    add_to,
    counted_until,
    excluded_rows,
    held_row,
    joined,
    missed_row,
)  # fmt: skip
from scheduling.core.cron import zone
from scheduling.core.newest_runs import newest_runs
from scheduling.core.nominal import TICK
from scheduling.core.occurrences import Due, Missed, Plan
from scheduling.core.stretches import Stretch
from scheduling.core.timing import MissedRuns
from scheduling.core.zones import require_aware

MOST_LOOKED_AT = 500
"""So many stretches at each end are looked at one by one."""


@dataclass
class _Found:
    """What lies between the first occurrence that is not on record and now.

    Args:
        due: the occurrences that may run, in their order.
        uncounted: those that were not looked at one by one. They lie before the newest of `due`.
        excluded: those that are excluded, by reason.
        held: those that were held, and that do not run.
        undecided: the first occurrence whose time has not come; None if there is none.
    """

    due: list[Due] = field(default_factory=list)
    uncounted: Counted | None = None
    excluded: dict[str, Counted] = field(default_factory=dict)
    held: list[Missed] = field(default_factory=list)
    undecided: datetime | None = None


def plan(own: Assigned, first: datetime, now: datetime) -> Plan:
    """Plan a schedule whose first occurrence that is not on record has the nominal instant `first`.

    Raises:
        ValueError: an instant is naive.
        ZoneError: the zone is unknown.
    """
    first, now = require_aware(first), require_aware(now)
    if (alone := _alone(own, first, now)) is not None:
        return alone
    found = _look(own, first, now)
    runs, missed = _choose(own, found, now)
    wake = own.wake(found.undecided)
    skips = (*missed, *found.held, *excluded_rows(own, found.excluded))
    return Plan(
        run=runs[-1] if runs else None, missed=None, earlier=tuple(runs[:-1]), skips=skips,
        next_run_at=wake.at, next_nominal_at=_other(wake),
    )  # fmt: skip


def _alone(own: Assigned, first: datetime, now: datetime) -> Plan | None:
    """The plan where no calendar is asked, and no occurrence is due but the first: so it is while a producer runs.

    Returns None in each other case. The general way leads to the same plan, and takes three times as long.
    """
    start = own.at(first)
    if own.timing.excluded is not None or not start <= now <= start + own.timing.longest_wait:
        return None
    following = own.times.after(first)
    if following is not None and following <= now:
        return None
    wake = NEVER if following is None else Wake(following, own.at(following))
    due = Due(first, own.times.key(first), start)
    return Plan(run=due, missed=None, next_run_at=wake.at, next_nominal_at=_other(wake))


def first_plan(own: Assigned, now: datetime) -> tuple[datetime | None, datetime | None]:
    """The `next_run_at` and the `next_nominal_at` of a schedule that was just made or edited.

    A date that has passed still is the next occurrence, as in `occurrences.first_run`.
    """
    date = own.times.date_time if own.times.cron is None else None
    wake = own.wake(date) if date is not None else own.first_after(now)
    return wake.at, _other(wake)


def wake_at(own: Assigned, nominal: datetime) -> tuple[datetime | None, datetime | None]:
    """The `next_run_at` and the `next_nominal_at` if the first occurrence that is not on record is this one."""
    wake = own.wake(nominal)
    return wake.at, _other(wake)


def skip_all(own: Assigned, first: datetime, until: datetime, why: str) -> Plan:
    """The plan with which nothing runs whose assigned time is `until` or earlier. `why` is as in `skip_reasons`."""
    last = own.reached(first, until)
    if last is None:
        wake = own.wake(first)
        return Plan(None, None, wake.at, next_nominal_at=_other(wake))
    counted = Counted(first, last, 1 + own.times.count(first, last))
    wake = own.wake(own.times.after(last))
    return Plan(None, missed_row(own, counted, why), wake.at, next_nominal_at=_other(wake))


def _look(own: Assigned, first: datetime, now: datetime) -> _Found:
    """Sort the occurrences from `first` on, up to the first one whose time has not come."""
    found = _Found()
    last = own.reached(first, now)
    if last is None:
        found.undecided = first  # what a calendar holds is released later than at its nominal instant
        return found
    begin: datetime | None = first
    if own.timing.excluded is not None:
        begin = _sort(own, found, first, last, now, MOST_LOOKED_AT)
    if begin is None:
        return found
    looked_at = own.timing.most_runs if own.timing.excluded is None else max(own.timing.most_runs, MOST_LOOKED_AT)
    newest = own.times.newest(looked_at, begin - TICK, last) if begin < last else None  # mostly, one is due
    tail = begin if newest is None or newest < begin else own.times.after(newest) or begin
    if own.timing.excluded is not None and tail > begin:
        _sort(own, sorted_out := _Found(), tail, last, now, None)
        if (wanted := own.timing.most_runs - len(sorted_out.due)) > 0:
            tail = newest_runs(own, begin, tail, now, wanted)
    if tail > begin:
        found.uncounted = counted_until(own, begin, tail - TICK)
    _sort(own, found, tail, last, now, None)
    return found


def _sort(
    own: Assigned, found: _Found, first: datetime, last: datetime, now: datetime, most: int | None
) -> datetime | None:
    """Sort the occurrences in [first, last]. Returns the first one that was not looked at; None if all were."""
    found.undecided = None
    for number, stretch in enumerate(own.walk(first)):
        if stretch.first > last:
            found.undecided = stretch.first
            return None
        if number == most:
            return stretch.first
        if stretch.why is None:
            found.due.append(Due(stretch.first, own.times.key(stretch.first), own.at(stretch.first)))
        elif own.holds:
            if not _released(own, found, stretch, now):
                found.undecided = stretch.first
                return None
        else:
            counted = counted_until(own, stretch.first, last if stretch.last is None else min(last, stretch.last))
            add_to(found.excluded, stretch.why, counted)
            if counted.last != stretch.last:
                found.undecided = own.times.after(counted.last)
                return None
    return None


def _released(own: Assigned, found: _Found, held: Stretch, now: datetime) -> bool:
    """Whether a hold is over. Then the latest occurrence may run, and the others are counted."""
    at, gives_way = own.release(held)
    if at is None or at > now or held.last is None or held.end is None:
        return False
    runs, others = held.end if gives_way else held.last, held.count - (not gives_way)
    if not gives_way:
        found.due.append(Due(held.last, own.times.key(held.last), at))
    if others:
        last = held.last if gives_way else own.times.last(held.first, held.last - TICK) or held.first
        instead = skip_reasons.later_ran(runs, zone(own.times.tz))
        found.held.append(held_row(own, Counted(held.first, last, others), held.why or "", instead))
    return True


def _choose(own: Assigned, found: _Found, now: datetime) -> tuple[list[Due], list[Missed]]:
    """The occurrences that run, and those that were missed."""
    timing = own.timing
    young = [due for due in found.due if now - (due.assigned or due.instant) <= timing.longest_wait]
    runs = young[-timing.most_runs :]
    old = joined([_one(due) for due in found.due[: len(found.due) - len(young)]])
    spare = joined([_one(due) for due in young[: len(young) - len(runs)]])
    if found.uncounted is not None:
        too_old = own.reached(found.uncounted.first, now - timing.longest_wait - TICK)
        first, last = found.uncounted.first, found.uncounted.last
        if too_old is not None:
            part = counted_until(own, first, min(too_old, last))
            old = joined([counted for counted in (old, part) if counted is not None])
        further = first if too_old is None else own.times.after(too_old)
        if further is not None and further <= last:
            spare = joined([counted_until(own, further, last), *([spare] if spare is not None else [])])
    if timing.missed_runs is MissedRuns.ALL:
        reasons = [(old, skip_reasons.too_late(timing.within)), (spare, skip_reasons.OVER_CAP)]
        return runs, [missed_row(own, counted, why) for counted, why in reasons if counted is not None]
    both = joined([counted for counted in (old, spare) if counted is not None])
    return runs, [] if both is None else [missed_row(own, both, _why_missed(own, found, bool(runs), spare is not None))]


def _why_missed(own: Assigned, found: _Found, one_runs: bool, some_young: bool) -> str:
    """Why occurrences were missed. If none runs, although some were young enough, a calendar excluded all it saw."""
    if own.timing.missed_runs is MissedRuns.NONE:
        return skip_reasons.NOT_CAUGHT_UP
    if not one_runs and not some_young:
        return skip_reasons.too_late(own.timing.within)
    if found.uncounted is not None and own.timing.excluded is not None:
        return skip_reasons.PERHAPS_EXCLUDED
    return skip_reasons.NO_PRODUCER


def _one(due: Due) -> Counted:
    return Counted(due.instant, due.instant, 1)


def _other(wake: Wake) -> datetime | None:
    """The nominal instant, if it is not the instant of the wake."""
    return None if wake.nominal == wake.at else wake.nominal
