"""The rows that the checks and the dashboard watch. One statement counts all of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from scheduling.core.alert_rules import Severity
from scheduling.core.breaker import BreakerState
from scheduling.core.lifecycle import OPEN_STATES, WAITING, State
from scheduling.core.pings import Event
from scheduling.core.queues import MAIN, STANDALONE
from scheduling.core.run_bounds import PausedFor
from scheduling.core.service import OFTEN, STEADY
from scheduling.models import (
    Alert,
    AlertMessage,
    AlertRule,
    Breaker,
    Calendar,
    Channel,
    MovedRun,
    Pause,
    Ping,
    Process,
    RefusedRow,
    Scheduler,
    SchedulerExecution,
)
from scheduling.models.alert import URGENCY
from scheduling.models.alert_routes import telling_rules
from scheduling.models.calendar import LONG
from scheduling.models.mutes import not_muted
from scheduling.models.plan import PlanState, has_ended
from scheduling.models.used_queues import in_used_queues

SILENT_REMEMBERED = timedelta(days=1)
"""How long a silent process is reported. Sweeps recover the runs of a silent process much earlier."""
STUCK_LONG = timedelta(minutes=2)
PAUSED_LONG = timedelta(days=1)
PINGS_LATE = timedelta(minutes=10)
DROPPED_REMEMBERED = timedelta(days=1)

Rows = Callable[[datetime], QuerySet[Any]]
"""Returns the rows at an instant."""


def in_state(*states: State) -> Rows:
    """The executions in these states."""
    return lambda _now: SchedulerExecution.objects.in_state(*states)


def waiting_in(queue: str, now: datetime) -> QuerySet[SchedulerExecution]:
    """The queued executions that should have started, the oldest first."""
    return SchedulerExecution.objects.overdue(State.QUEUED, now).filter(queue=str(queue))


def stuck_in(state: State, now: datetime) -> QuerySet[SchedulerExecution]:
    """The executions whose time in this state has been over for `STUCK_LONG`."""
    return SchedulerExecution.objects.overdue(state, now - STUCK_LONG)


def claimed_long(now: datetime) -> QuerySet[SchedulerExecution]:
    """The claimed executions that should have been published, the oldest first. Events that wait are claimed, too.

    It makes queries of its own, so it is not among `WATCHED`.
    """
    used = in_used_queues(State.CLAIMED)
    return SchedulerExecution.objects.none() if used is None else stuck_in(State.CLAIMED, now).filter(used)


CLOSED_LATELY = timedelta(hours=1)
"""So long a circuit breaker that has closed again is a finding."""


def fell_silent(now: datetime) -> QuerySet[Process]:
    """The processes that fell silent in the last day.

    A killed process stays silent for ever. After a day, it no longer needs attention and is left out.
    """
    lately = (now - SILENT_REMEMBERED, now + SILENT_REMEMBERED)
    return Process.objects.silent(now).filter(heartbeat_at__range=lately).order_by("-heartbeat_at")


def set_aside(_now: datetime) -> QuerySet[Scheduler]:
    """The schedules that cannot be planned."""
    return Scheduler.objects.filter(plan_state=PlanState.SET_ASIDE).order_by("pk")


def without_next_run(now: datetime) -> QuerySet[Scheduler]:
    """The active schedules without a next run, but for those that have ended as their operators wanted it."""
    return Scheduler.objects.filter(plan_state=PlanState.WITHOUT_NEXT_RUN).exclude(has_ended(now)).order_by("pk")


def paused_work(now: datetime) -> QuerySet[Pause]:
    """The pauses of handlers, queues and the whole site that have not ended, the newest first."""
    return Pause.objects.filter(Q(ends_at=None) | Q(ends_at__gt=now)).order_by("-pk")


MOVED_LATELY = timedelta(days=3)
"""For so long, the runs that new zone data has moved are a finding."""


def moved_runs(now: datetime) -> QuerySet[MovedRun]:
    """The runs that new zone data has moved, the newest first."""
    return MovedRun.objects.filter(moved_at__gte=now - MOVED_LATELY).order_by("-pk")


def run_out_calendars(now: datetime) -> QuerySet[Calendar]:
    """The calendars in use whose last date is over. A day later, it is over in each zone."""
    using = Scheduler.objects.filter(calendar=OuterRef("pk"), status=True)
    over = now.astimezone(UTC).date() - timedelta(days=1)
    return Calendar.objects.filter(Exists(using), last_date__lt=over).defer(*LONG).order_by("last_date", "pk")


def open_breakers(_now: datetime) -> QuerySet[Breaker]:
    """The circuit breakers that are open or half open."""
    return Breaker.objects.exclude(state=BreakerState.CLOSED.value).order_by("-state", "pk")


def closed_breakers(now: datetime) -> QuerySet[Breaker]:
    """The circuit breakers that have closed again lately, the last one first."""
    rows = Breaker.objects.filter(state=BreakerState.CLOSED.value, since__gt=now - CLOSED_LATELY, openings__gt=0)
    return rows.order_by("-since", "pk")


def overdue(now: datetime) -> QuerySet[Scheduler]:
    """The schedules that are due and not claimed, the oldest first."""
    return Scheduler.objects.overdue(now)


def paused_long(now: datetime) -> QuerySet[Scheduler]:
    """The schedules that have been paused for more than `PAUSED_LONG`, but for those that have run as often as they
    were to run."""
    rows = Scheduler.objects.filter(status=False, paused_at__lt=now - PAUSED_LONG)
    return rows.exclude(paused_for=PausedFor.RUNS.value).order_by("-paused_at", "pk")


def paused_by_failures(_now: datetime) -> QuerySet[Scheduler]:
    """The schedules that their own rule has paused after failures in a row, the last one first."""
    rows = Scheduler.objects.filter(status=False, paused_at__isnull=False, paused_for=PausedFor.FAILURES.value)
    return rows.order_by("-paused_at", "pk")


def services(_now: datetime) -> QuerySet[Scheduler]:
    """The active services. They need a standalone consumer.

    Of one value alone, Django makes a condition for which SQLite uses no index, and reads every schedule.
    """
    return Scheduler.objects.filter(stay_alive__in=[True], status__in=[True])


def unsteady(now: datetime) -> QuerySet[SchedulerExecution]:
    """The open runs of services that have ended `OFTEN` times in a row, the worst first."""
    standalone = SchedulerExecution.objects.in_state(*OPEN_STATES).filter(queue=STANDALONE)
    # The comparison subtracts nothing: MariaDB and MySQL refuse a negative result of columns without a sign.
    often = standalone.filter(attempt__gt=F("retry_base") + OFTEN, scheduler__stay_alive=True)
    steady = Q(state=State.RUNNING.value, started_at__lte=now - STEADY)
    return often.exclude(steady).annotate(restarts=F("attempt") - F("retry_base") - 1).order_by("-restarts", "pk")


GIVEN_UP_LATELY = timedelta(days=1)
"""So long a message of alerts that was given up is a finding."""
NOT_SENT_LONG = timedelta(minutes=5)
"""So old is a message of alerts with an error before it is a finding."""


def new_alerts(now: datetime) -> QuerySet[Alert]:
    """The open alerts that are neither acknowledged nor muted, the most urgent first."""
    return Alert.objects.filter(not_muted(now), ended_at=None, acknowledged_at=None).order_by(URGENCY.desc(), "-pk")


def new_critical_alerts(now: datetime) -> QuerySet[Alert]:
    """Those of `new_alerts` that are critical. So is a severity that this version of the code does not know."""
    return new_alerts(now).exclude(severity__in=(Severity.INFO.value, Severity.WARNING.value))


def undelivered(now: datetime) -> QuerySet[AlertMessage]:
    """The messages of alerts that were given up lately, or wait with an error for some time, the newest first."""
    state = AlertMessage.State
    waiting = Q(state__in=(state.WAITING.value, state.SENDING.value), created_at__lte=now - NOT_SENT_LONG)
    given_up = Q(state=state.GIVEN_UP.value, ended_at__gte=now - GIVEN_UP_LATELY)
    # Few messages are not sent. With this condition, each database finds them by the index on the state.
    not_sent = AlertMessage.objects.filter(state__in=(state.WAITING.value, state.SENDING.value, state.GIVEN_UP.value))
    return not_sent.filter((waiting & ~Q(error="")) | given_up).order_by("-pk")


def rules_that_tell(_now: datetime) -> QuerySet[AlertRule]:
    """The rules that are on and have a channel."""
    return telling_rules()


def mail_channels(_now: datetime) -> QuerySet[Channel]:
    """The channels of e-mail addresses. They get nothing on a site that prints its e-mails."""
    return Channel.objects.filter(kind=Channel.Kind.EMAIL.value)


def refused(now: datetime) -> QuerySet[RefusedRow]:
    """The rows that the database refuses to change."""
    return RefusedRow.objects.present(now)


def late_pings(now: datetime) -> QuerySet[Ping]:
    """The pings that have waited for too long, the oldest first."""
    return Ping.objects.waiting().filter(created_at__lt=now - PINGS_LATE).order_by("created_at", "pk")


def dropped_pings(now: datetime) -> QuerySet[Ping]:
    """The ends of runs of which a monitor was not told in the last day, the newest first."""
    rows = Ping.objects.filter(state=Ping.State.DROPPED, at__gt=now - DROPPED_REMEMBERED)
    return rows.exclude(event=Event.START.value).order_by("-at", "-pk")


queued = in_state(State.CLAIMED, State.QUEUED)
running = in_state(State.RUNNING)
retrying = in_state(State.RETRYING)
failed = in_state(State.FAILED)
running_long = partial(stuck_in, State.RUNNING)


@lru_cache(1_000)
def waiting(queue: str) -> Rows:
    """The executions that wait in a work queue. Each is counted on its own: the index is (state, queue, wake_at)."""
    return partial(waiting_in, queue)


ALWAYS = (MAIN, STANDALONE)
"""The work queues that every installation uses."""


def _between(after: str | None, before: str | None, _now: datetime) -> QuerySet[SchedulerExecution]:
    rows = SchedulerExecution.objects.in_state(*WAITING)
    rows = rows if after is None else rows.filter(queue__gt=after)
    return rows if before is None else rows.filter(queue__lt=before)


in_other_queues: tuple[Rows, ...] = tuple(
    partial(_between, after, before)
    for after, before in zip((None, *sorted(ALWAYS)), (*sorted(ALWAYS), None), strict=True)
)
"""The executions that wait in other work queues than those. Each gap between two names is one range of the index
(state, queue, wake_at, id), so the runs that wait in the main queue are not read."""

WATCHED: tuple[Rows, ...] = (
    queued,
    running,
    retrying,
    failed,
    running_long,
    *map(waiting, ALWAYS),
    *in_other_queues,
    fell_silent,
    set_aside,
    without_next_run,
    overdue,
    paused_long,
    paused_by_failures,
    paused_work,
    moved_runs,
    run_out_calendars,
    open_breakers,
    closed_breakers,
    services,
    unsteady,
    refused,
    late_pings,
    dropped_pings,
    new_alerts,
    undelivered,
    rules_that_tell,
    mail_channels,
)
