"""What an edit of a schedule's times changes: its next runs before and after, and the load of the next 24 hours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from scheduling.core.load import Load
from scheduling.core.run_changes import RunChange, compare
from scheduling.execution.edited_plan import as_saved
from scheduling.models import Scheduler
from scheduling.models.own_timing import has_own_timing
from scheduling.models.visibility import Visibility
from scheduling.operations import schedules
from scheduling.operations.actor import Actor
from scheduling.operations.catch_up import plan_of
from scheduling.operations.next_run_shapes import EmptierShape, LoadShape, MinuteShape, PreviewShape, RunChangeShape
from scheduling.operations.next_runs import next_runs
from scheduling.operations.schedule_check import fill
from scheduling.operations.site_load import site_load, starts_of

RUNS = 20
"""So many next runs are compared."""
MINUTES = 5
"""So many crowded minutes, and emptier ones, are told."""


@dataclass(frozen=True)
class Crowded:
    """A minute in which many schedules start.

    Args:
        without, with_it: how many start without and with the edit.
        own: whether the edited schedule starts in it.
    """

    at: datetime
    without: int
    with_it: int
    own: bool


@dataclass(frozen=True)
class LoadChange:
    """What an edit does to the load.

    Args:
        until: up to here the minutes were counted.
        is_cut: whether this is earlier than 24 hours from now, because more schedules are due than are looked at.
        minutes: the most crowded minutes with the edit.
        busiest: the most crowded minute in which the edited schedule starts; None if it does not start.
        emptier: emptier minutes near the busiest one, with their numbers of starts, the best first.
    """

    until: datetime
    is_cut: bool
    minutes: Sequence[Crowded]
    busiest: Crowded | None
    emptier: Sequence[tuple[datetime, int]]


def runs_of(row: Scheduler | None, now: datetime) -> list[datetime]:
    """The next runs that take place: none for a paused schedule, and for a new one none before.

    Raises:
        CronError, ZoneError: the times are invalid.
    """
    return next_runs(row, RUNS, now) if row is not None and row.status else []


def run_changes(stored: Scheduler | None, edited: Scheduler, now: datetime) -> list[RunChange]:
    """The next runs before and after the edit, side by side.

    Args:
        stored: the schedule before; None for a new one.

    Raises:
        CronError, ZoneError: the edited times are invalid.
    """
    return compare(_stored_runs(stored, now), runs_after(stored, edited, now), RUNS)


def runs_after(stored: Scheduler | None, edited: Scheduler, now: datetime) -> list[datetime]:
    """The next runs if the edit were saved now. What waits by the former times stays or is dropped, as a save decides.

    Raises:
        CronError, ZoneError: the edited times are invalid.
    """
    if stored is None:
        return runs_of(edited, now)
    row = as_saved(stored, edited, now)
    return [*_at_once(stored, row, now), *runs_of(row, now)][:RUNS]


def _at_once(stored: Scheduler, row: Scheduler, now: datetime) -> list[datetime]:
    """What has waited for its start, and starts now because the edit has taken the rules away for which it has waited.

    With rules, `next_runs` tells it.
    """
    waited, due = stored.next_run_at, row.next_run_at
    if waited is None or due is None or not due <= now < waited or has_own_timing(row):
        return []
    found = plan_of(row, now)
    return [due] if found is None else [one.instant for one in found.runs]


def _stored_runs(stored: Scheduler | None, now: datetime) -> list[datetime]:
    try:
        return runs_of(stored, now)
    except ValueError:  # plain SQL has made it invalid, so it has no runs
        return []


def load_change(visible: Visibility, stored: Scheduler | None, edited: Scheduler, now: datetime) -> LoadChange:
    """The load of the next 24 hours with and without the edit, of the schedules that are seen."""
    counted = site_load(visible, now)
    known = stored is not None and stored.status and stored.next_run_at is not None
    before = _starts(stored, now) if known else []
    own = _starts(edited, now) if stored is None else _starts_after(as_saved(stored, edited, now), now)
    without, with_it = counted, counted.changed(before, -1).changed(own, 1)
    places = {place for place in map(with_it.place, own) if place is not None}
    told = with_it.most_crowded((place for place, count in enumerate(with_it.counts) if count), MINUTES)
    busiest = next(iter(with_it.most_crowded(places, 1)), None)
    near = with_it.emptier_near(busiest, MINUTES) if busiest is not None else []
    return LoadChange(
        until=counted.end,
        is_cut=counted.is_cut,
        minutes=[_crowded(without, with_it, place, places) for place in told],
        busiest=None if busiest is None else _crowded(without, with_it, busiest, places),
        emptier=[(with_it.at(place), with_it.counts[place]) for place in near],
    )


def _starts(row: Scheduler | None, now: datetime) -> list[datetime]:
    if row is None or not row.status:
        return []
    return starts_of(row, now)


def _starts_after(row: Scheduler, now: datetime) -> list[datetime]:
    """The starts of an edited schedule. What the edit drops starts before its next run, and is left out."""
    found, first = _starts(row, now), row.next_run_at
    if first is None or first <= now or row.spread_each:  # offsets of their own are not counted
        return found
    return [at for at in found if at >= first]


def _crowded(without: Load, with_it: Load, place: int, own: set[int]) -> Crowded:
    return Crowded(with_it.at(place), without.counts[place], with_it.counts[place], place in own)


def preview(actor: Actor, pk: int | None, values: Mapping[str, Any], now: datetime) -> PreviewShape:
    """What a change of a schedule, or a new schedule, would do. The values are checked, and nothing is stored.

    Args:
        pk: the schedule that would be changed; None: a new one.
        values: see `ScheduleValues`.

    Raises:
        Refused: FORBIDDEN, NOT_FOUND, INVALID or SCHEDULE_RETRY_POLICY_INVALID.
    """
    actor.must(schedules.ADD if pk is None else schedules.CHANGE)
    stored = None if pk is None else schedules.by_id(actor, pk)
    edited = Scheduler() if stored is None else copy(stored)
    fill(actor, edited, values)
    changes = run_changes(stored, edited, now)
    return PreviewShape(
        schedule_id=pk,
        before=[at.astimezone(UTC) for at in _stored_runs(stored, now)],
        after=[at.astimezone(UTC) for at in runs_after(stored, edited, now)],
        changes=[RunChangeShape(before=one.before, after=one.after, mark=one.mark.value) for one in changes],
        load=_load_shape(load_change(actor.visible, stored, edited, now)),
    )


def _load_shape(found: LoadChange) -> LoadShape:
    def shaped(one: Crowded) -> MinuteShape:
        return MinuteShape(at=one.at, without=one.without, with_it=one.with_it, own=one.own)

    return LoadShape(
        until=found.until,
        is_cut=found.is_cut,
        minutes=[shaped(one) for one in found.minutes],
        busiest=None if found.busiest is None else shaped(found.busiest),
        emptier=[EmptierShape(at=at, starts=count) for at, count in found.emptier],
    )
