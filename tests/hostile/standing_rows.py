"""Rows of all tables, some with hostile values that plain SQL has written."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db import models

from scheduling.core.alert_rules import RuleKind
from scheduling.models import (
    Deployment,
    KnownHandler,
    Reminder,
    Replay,
    ReplayChunk,
    ReplayGroup,
    Scheduler,
    ScheduleRevision,
    SchedulerExecution,
    Worker,
)
from scheduling.processes.deployment_row import make_row_if_new
from tests.factories import (
    AlertNoticeFactory,
    AlertRuleFactory,
    AlertWatchFactory,
    AnsweredRequestFactory,
    ApiTokenFactory,
    AttemptFactory,
    BackfillFactory,
    BreakerFactory,
    CalendarFactory,
    ChannelFactory,
    DeathRecordFactory,
    EventFactory,
    GroupFactory,
    HandlerSetFactory,
    KnownErrorGroupFactory,
    LimitPlaceFactory,
    LoweredLimitFactory,
    ManualExecutionFactory,
    MovedRunFactory,
    NotificationFactory,
    OutputFactory,
    PauseFactory,
    PingFactory,
    ProcessFactory,
    RefusedRowFactory,
    ReminderFactory,
    ReportFactory,
    RunStepFactory,
    SchedulerFactory,
    StartDeadlineFactory,
    TallyFactory,
    TallyMarkFactory,
    TallyTotalFactory,
    UncountedSkipFactory,
    due,
)
from tests.hostile.values import Spoiled, all_models, columns, hostile_value, lenient, write
from tests.reports.support import artefact_of

BATCH = 20
"""So many hostile values stand at once. Each row has one or two of them."""

STATES = ("queued", "queued", "queued", "retrying", "retrying", "running", "running", "claimed", "failed", "succeeded")
TWICE = (Scheduler, SchedulerExecution)
"""Tables whose columns get twice as many values, because producers and consumers read most of these columns."""

Rows = dict[type[models.Model], list[int]]


def stand(now: datetime) -> Rows:
    """Store rows of all tables, and return their primary keys. The schedules and the executions are due."""
    make_row_if_new()  # before there are executions: later, a missing row is a hold
    past = now - timedelta(minutes=5)
    scheduler = SchedulerFactory(handler="tests.typed", rare=True, params={"since_days": 1})
    named = [CalendarFactory(), CalendarFactory(entries="2020-01-01..2020-01-03 closed\nevery 02-29"), None, None]
    schedules = [SchedulerFactory(schedule="* * * * *", handler="tests.noop", calendar=one) for one in named]
    schedules += [SchedulerFactory(schedule="* * * * *", of_report=True), SchedulerFactory(once=True)]
    schedules += [SchedulerFactory(schedule="* * * * *", of_reminder=True, reminder=ReminderFactory())]
    schedules += [SchedulerFactory(schedule="* * * * *", off=True)]
    channels = [ChannelFactory(), ChannelFactory(webhook=True), ChannelFactory(email=True)]
    for reminder in Reminder.objects.all():
        reminder.channels.add(*channels)
    for row in schedules:
        due(row, now - timedelta(seconds=5))
    executions = [
        ManualExecutionFactory(
            scheduler=scheduler,
            state=state,
            wake_at=past,
            attempt=int(state != "queued"),
            reason="an earlier reason",
            headers={"trace": "7"},
        )
        for state in STATES
    ]
    failed, succeeded = executions[-2:]
    replay = Replay.objects.create(
        key=uuid.uuid4(), requested_by="another user", created_at=past, selection="all failures with ValueError",
        state=Replay.State.RELEASED, canary=succeeded.pk, canary_attempt=1, total=2, sent=1, next_at=past,
    )  # fmt: skip
    handlers = HandlerSetFactory(known={"tests.noop": "a"})
    place = LimitPlaceFactory(execution=executions[0])
    rules = [AlertRuleFactory(kind=kind.value, at="06:30", schedule=schedules[0]) for kind in RuleKind]
    rules += [AlertRuleFactory(kind=kind.value) for kind in RuleKind]
    notice = AlertNoticeFactory(alert__rule=rules[0])
    moved = MovedRunFactory(scheduler=scheduler)
    made = [
        *schedules, *executions, *named[:2], AttemptFactory(execution=failed, number=1),
        OutputFactory(execution=succeeded),
        NotificationFactory(execution=succeeded), PingFactory(execution=succeeded, open_execution=succeeded.pk),
        PingFactory(execution=failed, waiting=True), *channels, PauseFactory(), PauseFactory(ended=True),
        ApiTokenFactory(), ApiTokenFactory(expired=True), AnsweredRequestFactory(),
        BreakerFactory(name="tests.depending"), BreakerFactory(closed=True), EventFactory(execution=succeeded),
        place, place.limit, LoweredLimitFactory(name="tests.two_at_once"),
        artefact_of(succeeded), ProcessFactory(handler_set=handlers, started_at=past), ProcessFactory(producer=True),
        ProcessFactory(handler_set=HandlerSetFactory(known={"tests.noop": "b"})), RefusedRowFactory(), replay,
        handlers, KnownHandler.objects.earliest("pk"),
        DeathRecordFactory(execution=failed), RunStepFactory(execution=failed),
        RunStepFactory(execution=succeeded, position=True),
        ReplayChunk.objects.create(replay=replay, first=0, items=[[failed.pk, 1], [failed.pk, 1]]),
        ReplayGroup.objects.create(replay=replay, group=GroupFactory()),
        TallyFactory(), TallyMarkFactory(), TallyTotalFactory(), UncountedSkipFactory(), KnownErrorGroupFactory(),
        AlertWatchFactory(), StartDeadlineFactory(execution=succeeded.pk),
        BackfillFactory(scheduler=scheduler, next_at=past),
        moved, moved.zone_data,
        *rules, notice, notice.alert, notice.message,
        *ScheduleRevision.objects.filter(schedule__in=[row.pk for row in schedules[:3]]),
        ReportFactory(), Reminder.objects.all()[0], *Worker.objects.filter(name__in=["tests.noop", "tests.typed"]),
    ]  # fmt: skip
    rows: Rows = {model: [] for model in all_models()}
    for row in made:
        rows[type(row)].append(row.pk)
    return rows


def all_columns(pick: random.Random) -> Iterator[tuple[type[models.Model], models.Field]]:
    """Yield all columns of all tables in random order, again and again.

    The row of the deployment is left out: a process holds when it has another value (`test_fuzzed_deployment`).
    """
    while True:
        found = [(model, field) for model in all_models() if model is not Deployment for field in columns(model)]
        found += [(model, field) for model in TWICE for field in columns(model)]
        pick.shuffle(found)
        yield from found


def spoil(pick: random.Random, source: Iterator[tuple[type[models.Model], models.Field]], rows: Rows) -> list[Spoiled]:
    """Write BATCH hostile values by SQL, and return those that the database has stored."""
    stored: list[Spoiled] = []
    with lenient():
        for _ in range(BATCH):
            model, field = next(source)
            spoiled = write(model, field, pick.choice(rows[model]), hostile_value(pick, field))
            stored += [spoiled] if spoiled is not None else []
    return stored
