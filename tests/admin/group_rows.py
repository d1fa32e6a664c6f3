"""Rows of one group, in each table and each state. Each text of these rows holds the marker of the group."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.contrib.auth.models import Group, User
from django.db.models import Model
from django.utils import timezone as clock

from scheduling.core.lifecycle import OPEN_STATES, State
from scheduling.models import Alert, RefusedRow, Replay, ReplayChunk, ReplayGroup, Scheduler, SchedulerExecution
from scheduling.operations.audit import message as entry_message
from tests.admin.rows import Rows
from tests.factories import (
    AlertFactory,
    AlertMessageFactory,
    AlertNoticeFactory,
    AlertRuleFactory,
    AttemptFactory,
    BackfillFactory,
    CalendarFactory,
    ChannelFactory,
    DeathRecordFactory,
    FailedExecutionFactory,
    MovedRunFactory,
    NotificationFactory,
    OutputFactory,
    PingFactory,
    RefusedRowFactory,
    ReminderFactory,
    ReportFactory,
    RunStepFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    UserFactory,
    WorkerFactory,
)
from tests.reports.support import artefact_of


def rows_of(group: Group | None, marker: str) -> Rows:
    """Store and return the rows. Each of them is seen on some page by a user who may see it."""
    schedules = list(_schedules(group, marker))
    first = schedules[0]
    columns = {
        "group": group, "error_class": f"{marker}.Error", "error_message": f"{marker} message", "reason": marker,
        "progress": marker, "requested_by": marker, "params": {"note": marker}, "fingerprint": f"{marker:f<40}"[:40],
    }  # fmt: skip
    executions = [
        SchedulerExecutionFactory(
            scheduler=first, execution_key=f"{marker}-{state.value}", attempt=int(state is not State.CLAIMED),
            started_at=clock.now() - timedelta(hours=1), finished_at=None if state in OPEN_STATES else clock.now(),
            wake_at=clock.now() - timedelta(minutes=30), state=state.value,
            scheduled_at=clock.now() - timedelta(minutes=number), **columns,
        )
        for number, state in enumerate(State)
    ]  # fmt: skip
    states = {row.state: row for row in executions}
    failed, succeeded = states["failed"], states["succeeded"]
    failures = [
        failed,
        *(FailedExecutionFactory(scheduler=first, execution_key=f"{marker}-{n}", **columns) for n in range(3)),
        FailedExecutionFactory(
            scheduler=None, execution_key=f"{marker}-alone", target_name=f"{marker} target", **columns
        ),
    ]
    AttemptFactory(execution=failed, number=1, error_message=marker, traceback=f"{marker} line")
    OutputFactory(execution=succeeded, text=f"2026-03-10T12:00:00.000Z INFO {marker} output\n")
    OutputFactory(execution=states["running"], text=f"2026-03-10T12:00:00.000Z INFO {marker} output\n")
    NotificationFactory(execution=states["succeeded"], recipient=f"{marker}@example.com", error=marker)
    PingFactory(execution=states["succeeded"], dropped=True, error=f"{marker} error")
    DeathRecordFactory(execution=failed, entries=[{"queue": marker, "reason": marker, "count": 1}])
    RunStepFactory(execution=failed, name=f"{marker} step")
    RunStepFactory(execution=failed, name="position", position=True, value=f'"{marker}"')
    RefusedRowFactory(row_id=failed.pk, error=f"{marker} error")
    RefusedRowFactory(row_id=first.pk, kind=RefusedRow.Kind.SCHEDULER, error=f"{marker} error")
    replay = Replay.objects.create(
        key=uuid.uuid4(), requested_by=marker, created_at=clock.now(), selection=f"all failures with {marker}",
        state=Replay.State.WAITING, reason=marker, canary=failed.pk, canary_attempt=4, total=2, position=1, sent=1,
    )  # fmt: skip
    ReplayChunk.objects.create(replay=replay, first=0, items=[[failed.pk, 4], [failures[1].pk, 4]])
    if group is not None:
        ReplayGroup.objects.create(replay=replay, group=group)
    moved = MovedRunFactory(scheduler=first, group=group)
    backfill = BackfillFactory(
        scheduler=first, group=group, reason=f"{marker} reason", note=f"{marker} note", requested_by=marker
    )
    rule = AlertRuleFactory(name=f"{marker} rule", group=group, kind="failed_in_a_row", mute_reason=marker)
    channel = ChannelFactory(name=f"{marker} channel", description=marker, group=group, tells_by_default=True)
    rule.channels.add(channel)
    calendar = CalendarFactory(name=f"{marker} calendar", description=marker, group=group, entries=f"sat {marker}")
    Scheduler.objects.filter(pk=first.pk).update(calendar=calendar)
    texts = {"subject": f"{marker} subject", "seen": f"{marker} seen", "advice": marker, "group": group}
    alerts = [
        AlertFactory(rule=rule, schedule=first, execution=failed.pk, **texts),
        AlertFactory(rule=rule, acknowledged=True, muted=True, **texts),
        AlertFactory(rule=rule, over=True, **texts),
    ]
    message = AlertMessageFactory(channel=channel, waiting=True, error=f"{marker} error")
    for alert in alerts:
        AlertNoticeFactory(alert=alert, message=message)
    # Of an alert without a group, the name of a channel of the group is hidden.
    for alert in Alert.objects.filter(group=None)[:1]:
        AlertNoticeFactory(alert=alert, message=message)
    user = UserFactory(username=f"who-{marker[:6]}")
    for row in (first, failed, replay, backfill, alerts[0], rule, channel, calendar):
        _log(user, row, marker, group)
    _log_deleted(user, marker, group)
    return {
        "scheduler": schedules,
        "schedulerexecution": [*executions, *failures],
        "failedexecution": failures,
        "replay": [replay],
        "backfill": [backfill],
        "movedrun": [moved],
        "alert": alerts,
        "alertrule": [rule],
        "calendar": [calendar],
        "channel": [channel],
        "artefact": [artefact_of(succeeded, filename=f"{marker}.csv")],
    }


def _schedules(group: Group | None, marker: str) -> Iterator[Scheduler]:
    """Schedules that each part of the dashboard and each finding would name."""
    own = {"group": group, "params": {"note": marker}}
    every_minute = {"schedule": "* * * * *", "worker": WorkerFactory(name="tests.anything"), **own}
    yield SchedulerFactory(description=f"{marker} first", keep_count=7, **every_minute)
    paused = SchedulerFactory(description=f"{marker} paused", off=True, **every_minute)
    day = timedelta(days=2)
    Scheduler.objects.filter(pk=paused.pk).update(
        pause_reason=marker, paused_at=clock.now() - day, paused_by=f"{marker}"
    )
    yield paused
    late = SchedulerFactory(description=f"{marker} late", stay_alive=True, **every_minute)
    Scheduler.objects.filter(pk=late.pk).update(next_run_at=clock.now() - timedelta(minutes=9))
    yield late
    broken = SchedulerFactory(description=f"{marker} broken", **every_minute)
    columns = Scheduler.objects.filter(pk=broken.pk)
    columns.update(next_run_at=None, plan_error=f"{marker} error")
    yield broken
    # Its last occurrence was skipped.
    skipped = SchedulerFactory(description=f"{marker} skipped", **every_minute)
    SchedulerExecutionFactory(scheduler=skipped, group=group, skipped=True, reason=f"{marker} reason")
    yield skipped
    often = SchedulerFactory(description=f"{marker} often", **every_minute)
    SchedulerExecutionFactory.create_batch(4, scheduler=often, group=group, failed=True, error_message=marker)
    yield often
    slow = SchedulerFactory(description=f"{marker} slow", **every_minute)
    began = clock.now() - timedelta(hours=3)
    SchedulerExecutionFactory.create_batch(6, scheduler=slow, group=group, succeeded=True)
    SchedulerExecutionFactory(scheduler=slow, group=group, running=True, started_at=began)
    yield slow
    yield SchedulerFactory(description=f"{marker} report", of_report=True, report=ReportFactory(), group=group)
    yield SchedulerFactory(
        description=f"{marker} reminder", of_reminder=True, reminder=ReminderFactory(body="{{ schedule.description }}"),
        group=group,
    )  # fmt: skip


def crossed(seen: Group, hidden: Group, marker: str) -> tuple[SchedulerExecution, SchedulerExecution]:
    """Two schedules that have changed their group: a run that is seen, of a hidden schedule, and the other way round.

    Only the hidden halves hold the marker.
    """
    now_hidden = SchedulerFactory(
        description=f"{marker} moved away", params={"note": marker}, group=hidden, handler="tests.anything"
    )
    now_seen = SchedulerFactory(description="moved here", group=seen)
    visible = FailedExecutionFactory(scheduler=now_hidden, group=None, params={}, error_message="an old failure")
    secret = FailedExecutionFactory(
        scheduler=now_seen, group=hidden, params={"note": marker}, error_message=marker, error_class=f"{marker}.Error"
    )
    return visible, secret


def _log(user: User, row: Model, marker: str, group: Group | None) -> None:
    said = entry_message(marker, [], group.pk if group else None)
    LogEntry.objects.log_actions(user.pk, [row], CHANGE, said)


def _log_deleted(user: User, marker: str, group: Group | None) -> None:
    """The entries of a schedule and of an execution that are gone."""
    schedule = SchedulerFactory(description=f"{marker} gone", group=group)
    for row in (SchedulerExecutionFactory(scheduler=schedule, group=group), schedule):
        key = row.pk
        entry = entry_message(f"{marker} gone", [], group.pk if group else None)
        LogEntry.objects.log_actions(user.pk, [row], CHANGE, entry)
        if isinstance(row, Scheduler):
            LogEntry.objects.log_actions(user.pk, [row], DELETION, entry)
        row.delete()
        assert not type(row)._default_manager.filter(pk=key).exists()


@contextmanager
def without_rule() -> Iterator[None]:
    """Take the rule out: each user sees everything, as if no row had a group."""
    from unittest.mock import patch

    from scheduling.models import visibility

    with patch.object(visibility, "_are_used", return_value=False):
        yield
