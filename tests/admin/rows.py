"""Store at least one row of each model that has admin pages, and executions in several states."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta

from django.db.models import Model
from django.utils import timezone as clock

from scheduling.models import Deployment, Replay, ReplayChunk
from scheduling.processes.deployment_row import make_row_if_new
from tests.factories import (
    AlertFactory,
    AlertMessageFactory,
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
    FailedExecutionFactory,
    GroupFactory,
    HandlerSetFactory,
    KnownErrorGroupFactory,
    LimitPlaceFactory,
    LoweredLimitFactory,
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
    SchedulerExecutionFactory,
    SchedulerFactory,
    StartDeadlineFactory,
    TallyFactory,
    TallyMarkFactory,
    TallyTotalFactory,
    UncountedSkipFactory,
    UserFactory,
    WorkerFactory,
)
from tests.reports.support import artefact_of

Rows = dict[str, Sequence[Model]]
"""Maps the name of each Django model to rows of this model. The name is in lower case, as in addresses."""


HEADERS = {"trace": "4bf92f", "Authorization": "Bearer hunter2"}


def one_of_each() -> Rows:
    """Store and return rows of each Django model. The first schedule is on, and the second schedule is off."""
    make_row_if_new()
    calendar = CalendarFactory(description="Days off", entries="every 12-25 Christmas\nsat,sun")
    typed = WorkerFactory(name="tests.typed")
    scheduler = SchedulerFactory(worker=typed, params={"since_days": 1}, calendar=calendar)
    scheduler.time_limit = 3_600  # its second revision
    scheduler.save()
    states = ("running", "retrying", "succeeded")
    executions = [SchedulerExecutionFactory(scheduler=scheduler, **{state: True}) for state in states]
    failed = FailedExecutionFactory(scheduler=scheduler)
    AttemptFactory(
        execution=failed, number=1, release="r42", traceback="Traceback (most recent call last):\n  ValueError"
    )
    OutputFactory(execution=executions[2])
    OutputFactory(execution=executions[0], text="2026-03-10T12:00:00.000Z WARN it takes long\n")
    of_code = SchedulerExecutionFactory(
        succeeded=True, scheduler=None, trigger="code", key=str(uuid.uuid4()), headers=HEADERS
    )
    AttemptFactory(
        execution=of_code, number=1, outcome="succeeded", result='{"rows": 7}', cpu_ms=250, peak_memory_kb=70_000
    )
    AttemptFactory(
        execution=executions[2], number=1, outcome="succeeded", batch_leader=of_code.pk, batch_attempt=1, batch_size=2
    )
    OutputFactory(execution=of_code, text="2026-03-10T12:00:00.000Z INFO printed by a batch\n")
    reminder, channel = ReminderFactory(), ChannelFactory()
    webhook, team = ChannelFactory(webhook=True), ChannelFactory(email=True)
    reminder.channels.add(channel, webhook, team)
    reminded = SchedulerExecutionFactory(succeeded=True, type="reminder", target_id=None)
    NotificationFactory(execution=reminded)
    NotificationFactory(execution=reminded, state="refused", error="The mail server answered 550: no such user")
    NotificationFactory(execution=reminded, kind="chat", recipient=channel.name, message_id="", unsure=1, tries=2)
    PingFactory(execution=reminded)
    PingFactory(execution=reminded, dropped=True)
    PingFactory(execution=reminded, waiting=True, kind="sentry")
    ProcessFactory(producer=True)
    ProcessFactory(silent=True)
    ProcessFactory(handler_set=HandlerSetFactory(known={"tests.noop": "a", "tests.mark": "a"}))
    RefusedRowFactory()
    AnsweredRequestFactory()
    TallyFactory()
    TallyTotalFactory()
    TallyMarkFactory()
    UncountedSkipFactory()
    StartDeadlineFactory(execution=executions[0].pk)
    KnownErrorGroupFactory()
    DeathRecordFactory(execution=failed)
    RunStepFactory(execution=executions[0])
    RunStepFactory(execution=executions[0], position=True)
    place = LimitPlaceFactory(execution=executions[0])
    replay = Replay.objects.create(
        key=uuid.uuid4(), requested_by="another user", created_at=clock.now(), selection="all failures with ValueError",
        state=Replay.State.WAITING, canary=failed.pk, canary_attempt=4, total=2, position=1, sent=1,
    )  # fmt: skip
    ReplayChunk.objects.create(replay=replay, first=0, items=[[failed.pk, 4], [0, 1]])
    rule = AlertRuleFactory(kind="not_finished", schedule=scheduler, at="06:30", muted_by="anna",
                            muted_until=clock.now() + timedelta(hours=1), mute_reason="The depot is slow")  # fmt: skip
    alert = AlertFactory(rule=rule, schedule=scheduler, execution=executions[0].pk, told_at=clock.now())
    AlertNoticeFactory(alert=alert, message=AlertMessageFactory(channel=channel))
    AlertNoticeFactory(alert=alert, message=AlertMessageFactory(waiting=True))
    AlertNoticeFactory(alert=alert, message=AlertMessageFactory(given_up=True))
    AlertWatchFactory()
    alerts = [alert, AlertFactory(acknowledged=True, muted=True, rule=rule), AlertFactory(over=True, rule=None)]
    return {
        "alert": alerts,
        "alertrule": [rule, AlertRuleFactory()],
        "replay": [replay],
        "movedrun": [MovedRunFactory(scheduler=scheduler)],
        "backfill": [BackfillFactory(scheduler=scheduler), BackfillFactory(paused=True), BackfillFactory(over=True)],
        "scheduler": [scheduler, SchedulerFactory(off=True)],
        "schedulerexecution": [*executions, SchedulerExecutionFactory(), reminded, of_code, failed],
        "failedexecution": [failed],
        "worker": [WorkerFactory(name="unused")],
        "reminder": [reminder],
        "channel": [channel, ChannelFactory(), webhook, team],
        "calendar": [calendar, CalendarFactory(entries="# nothing")],
        "event": [EventFactory(execution=executions[0])],
        "limitkey": [place.limit],
        "loweredlimit": [LoweredLimitFactory()],
        "breaker": [BreakerFactory(), BreakerFactory(closed=True)],
        "apitoken": [ApiTokenFactory(), ApiTokenFactory(revoked=True, permissions=["scheduling.view_scheduler"])],
        "pause": [PauseFactory(), PauseFactory(of_queue=True), PauseFactory(ended=True)],
        "process": [ProcessFactory(handler_set=HandlerSetFactory(known={"tests.noop": "b"}))],
        "report": [ReportFactory()],
        "artefact": [artefact_of(executions[2])],
        "deployment": list(Deployment.objects.all()),
        "user": [UserFactory()],
        "group": [GroupFactory()],
    }
