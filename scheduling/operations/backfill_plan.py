"""BackfillPlan: what a backfill of one schedule would do. It is the dry run, and the start takes it as it is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from scheduling.conf import get_conf
from scheduling.core import backfill
from scheduling.core.backfill import Options, Standing, standing
from scheduling.core.cron import CronError, ZoneError
from scheduling.core.text import visible_text
from scheduling.core.words import grouped
from scheduling.execution.backfill_record import OnRecord, Recorded, on_record
from scheduling.execution.instants import count_of, instants_of
from scheduling.handlers.permission import refusal
from scheduling.models import Scheduler
from scheduling.operations import executions
from scheduling.operations.actor import Actor
from scheduling.operations.refused import Code, Problem, Refused
from scheduling.operations.schedule_words import zone_of
from scheduling.operations.times import format_minute
from scheduling.operations.typed_instants import LONGEST_TYPED, typed_instants

_TICK = timedelta(microseconds=1)
_DAY = re.compile(r"\d{4}-\d{1,2}-\d{1,2}", re.ASCII)


@dataclass(frozen=True)
class BackfillPlan:
    """What a backfill would do with each instant of its range, in the order of time.

    Args:
        since, until: the range; both ends belong to it.
        instants: the instants at which the schedule fires by its present times.
        known: what is on record for them.
        shown: the ids of those executions on record that the actor may see.
        waits: the occurrence that is due now and that no producer has claimed yet; it is left to the producer.
        oldest: the due instant of the oldest run on record, if the range begins before it; otherwise None.
    """

    schedule: Scheduler
    since: datetime
    until: datetime
    options: Options
    instants: Sequence[datetime]
    known: OnRecord
    shown: frozenset[int] = frozenset()
    waits: datetime | None = None
    oldest: datetime | None = None

    @property
    def total(self) -> int:
        """How many instants the range has."""
        return len(self.instants)

    @property
    def new(self) -> int:
        """How many runs would be made."""
        return self.counts[Standing.NEW]

    @property
    def counts(self) -> Counter[Standing]:
        """How many instants there are of each standing."""
        return Counter(found for _instant, found, _row in self.lines())

    def lines(self) -> Iterator[tuple[datetime, Standing, Recorded | None]]:
        """Each instant in the order in which it runs, what becomes of it, and the execution on record.

        The execution is None if there is none, or if the actor may not see it.
        """
        for instant in reversed(self.instants) if self.options.newest_first else self.instants:
            made, ran = self.known.made.get(instant), self.known.ran.get(instant)
            found = standing(ran=ran is not None, made=made is not None, also_ran=self.options.also_ran)
            row = made or ran
            yield instant, found, row if row is not None and row.pk in self.shown else None


def digest(plans: Sequence[BackfillPlan]) -> str:
    """A text that tells whether the plans have other instants than those that an operator has seen."""
    return backfill.digest((plan.schedule.pk, backfill.stored(plan.instants, newest_first=False)) for plan in plans)


def plan(
    actor: Actor, schedule: Scheduler, since: datetime, until: datetime, options: Options, now: datetime
) -> BackfillPlan:
    """What a backfill would do. Nothing is stored.

    Args:
        schedule: a schedule that the actor sees.
        since, until: the range; both ends belong to it.

    Raises:
        Refused: FORBIDDEN if the schedule's code asks for a permission; CONFLICT if such a schedule cannot be
            backfilled; INVALID for the range or the options.
    """
    if said := refusal(actor, schedule):
        raise Refused(Code.FORBIDDEN, said)
    if schedule.stay_alive:
        raise Refused(Code.CONFLICT, _("It is a service: it has no runs of single instants, so none can be made up."))
    if schedule.date_time is not None:
        said = _("It runs once, at one date and time, so it has no range. Run it now instead.")
        raise Refused(Code.CONFLICT, said)
    if problems := [*_range_problems(since, until, now), *_option_problems(options)]:
        raise Refused.invalid(problems)
    # The occurrences from this one on belong to the producers, which may claim one of them at this moment.
    waits = schedule.next_nominal_at or schedule.next_run_at if schedule.status else None
    if waits is not None and waits > until:
        waits = None
    end = until if waits is None else min(until, waits - _TICK)
    try:
        count = count_of(schedule, since - _TICK, end)
        _check_count(schedule, count)
        instants = instants_of(schedule, since - _TICK, end, count)  # fewer, if a calendar excludes some
    except (CronError, ZoneError) as error:
        raise Refused(Code.CONFLICT, visible_text(error, 500)) from None
    known = on_record(schedule.pk, instants)
    return BackfillPlan(
        schedule, since, until, options, instants, known, _shown(actor, known), waits, _oldest(actor, schedule, since)
    )


def _shown(actor: Actor, known: OnRecord) -> frozenset[int]:
    """The executions that the actor may see. An old one may have a group that its schedule has no longer."""
    keys = [row.pk for rows in known for row in rows.values()]
    if not actor.has_perm(executions.VIEW):
        return frozenset()
    if not actor.visible.is_limited:
        return frozenset(keys)
    return frozenset(actor.visible.executions().filter(pk__in=keys).values_list("pk", flat=True))


def _check_count(schedule: Scheduler, count: int) -> None:
    most = get_conf().backfill_most
    if count > most:
        said = _(
            "The range has %(count)s occurrences of “%(name)s”. One backfill covers at most %(most)s "
            "(CRON_BACKFILL_MOST). Choose a shorter range."
        )
        facts = {"count": grouped(count), "most": grouped(most), "name": visible_text(schedule, 80)}
        raise Refused.value("until", said % facts, "too_many")


def _range_problems(since: datetime, until: datetime, now: datetime) -> Iterator[Problem]:
    if until < since:
        yield Problem("until", "order", _("The end of the range lies before its beginning."))
    elif until > now:
        said = _("The end of the range has not passed yet. A backfill covers only instants that have passed.")
        yield Problem("until", "future", said)


def _option_problems(options: Options) -> Iterator[Problem]:
    low, high = backfill.PER_MINUTE
    if not low <= options.per_minute <= high:
        said = _("Between %(low)s and %(high)s runs in a minute are possible.")
        yield Problem("per_minute", "range", said % {"low": low, "high": high})
    if len(options.reason) > backfill.REASON_LENGTH:
        said = _("The reason has at most %(most)s characters.")
        yield Problem("reason", "length", said % {"most": backfill.REASON_LENGTH})


def _oldest(actor: Actor, schedule: Scheduler, since: datetime) -> datetime | None:
    """The due instant of the oldest run on record, if it is later than the range begins.

    Retention removes old runs, so nothing tells whether an earlier instant has run.
    """
    rows = actor.visible.executions().filter(scheduler=schedule.pk).order_by("pk")
    oldest = rows.values_list("scheduled_at", flat=True).first()
    return oldest if oldest is not None and oldest > since else None


def typed_range(schedule: Scheduler, since: str, until: str, now: datetime) -> tuple[datetime, datetime]:
    """The range that was typed, on the clock of the schedule or with an offset. A date alone is the whole day.

    Of a local time that the clocks show twice, the range has both.

    Raises:
        Refused: INVALID.
    """
    first = _typed(schedule, "from", since, "00:00", now)
    last = _typed(schedule, "until", until, "23:59", now)
    return first[0], last[-1]


def _typed(schedule: Scheduler, name: str, text: str, reading: str, now: datetime) -> tuple[datetime, ...]:
    text = text.strip()[:LONGEST_TYPED]
    info = zone_of(schedule)
    found = typed_instants(f"{text} {reading}" if _DAY.fullmatch(text) else text, info, now)
    if found is None:
        example = f"{now.astimezone(info) - timedelta(days=2):%Y-%m-%d} 03:00"
        said = _("Type a date such as %(day)s, or a date and a time such as %(example)s.")
        raise Refused.value(name, said % {"day": example[:10], "example": example})
    return found.instants


def warnings(plan: BackfillPlan) -> list[str]:
    """What an operator should know before the start."""
    info, found = zone_of(plan.schedule), list[str]()
    if plan.oldest is not None:
        said = _("No run before %(time)s is on record. Older runs may have been removed, so they would run again.")
        found.append(said % {"time": format_minute(plan.oldest, info)})
    if plan.waits is not None:
        said = _("From %(time)s on, the producers run the occurrences themselves. The backfill ends before it.")
        found.append(said % {"time": format_minute(plan.waits, info)})
    if not plan.instants:
        found.append(_("The schedule has no occurrence in this range."))
    elif not plan.new:
        found.append(_("All of them are on record already, so nothing would run."))
    return found
