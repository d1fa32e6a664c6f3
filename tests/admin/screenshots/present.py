"""Stores what goes on at present in the invented shop: runs, processes, replays, users and their edits."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

from django.contrib.admin.models import ADDITION, CHANGE, LogEntry
from django.contrib.auth.models import Group, User
from django.db import models

from reports.models import Report
from scheduling.core.inbox_sentences import CANARY_FAILED_WITH
from scheduling.core.occurrences import first_run
from scheduling.execution.planning import plan_anew
from scheduling.management.groups import make_groups
from scheduling.models import (
    ApiToken,
    Calendar,
    Channel,
    Output,
    Process,
    Reminder,
    Replay,
    ReplayChunk,
    Scheduler,
    SchedulerExecution,
)
from scheduling.operations import audit
from scheduling.operations.params_diff import Change
from tests.admin.rows import Rows
from tests.admin.screenshots.alerts import store_alerts
from tests.admin.screenshots.batches import store_batch
from tests.admin.screenshots.history import CONSUMER, store_history
from tests.admin.screenshots.rules import store_rules
from tests.factories import (
    ApiTokenFactory,
    AttemptFactory,
    BackfillFactory,
    BreakerFactory,
    CalendarFactory,
    DeathRecordFactory,
    EventFactory,
    LimitPlaceFactory,
    LoweredLimitFactory,
    ManualExecutionFactory,
    MovedRunFactory,
    PauseFactory,
    PingFactory,
    ProcessFactory,
    SchedulerExecutionFactory,
    UserFactory,
)
from tests.reports.support import artefact_of


def store_installation(now: datetime) -> Rows:
    """Store the whole installation. Return rows for each Django model, as `one_of_each` does."""
    list(make_groups())
    anna, _ben = _users()
    schedules = store_history(now)
    report, reminder = _other_targets(now)
    executions = _executions(schedules, report, now)
    _edits(anna, schedules, now)
    made_by_migration = Scheduler.objects.filter(status=True, next_run_at=None)
    plan_anew(list(made_by_migration.values_list("pk", flat=True)), now)
    Scheduler.objects.update(created_at=now - timedelta(days=40))
    late = schedules["Refresh tokens of Contoso"]
    Scheduler.objects.filter(pk=late.pk).update(next_run_at=now - timedelta(minutes=12), planned_at=None)
    failed = SchedulerExecution.objects.filter(state="failed").latest("pk")
    _pings(failed, now)
    slow = SchedulerExecution.objects.filter(scheduler=schedules["Import orders UK"]).latest("pk")
    worker = schedules["Import orders DE"].worker
    assert worker is not None
    return {
        "replay": _replays(anna, schedules, now),
        "backfill": [
            BackfillFactory(
                scheduler=schedules["Import orders DE"],
                requested_by="anna",
                reason="The depot was closed",
                note="It waits until execution 4711 is over.",
            )
        ],
        "movedrun": [MovedRunFactory(scheduler=schedules["Import orders DE"])],
        "scheduler": [schedules["Import orders DE"]],
        "schedulerexecution": [failed, slow, *executions],
        "failedexecution": [failed],
        "worker": [worker],
        "reminder": [reminder],
        "calendar": [_calendar(schedules["Import orders DE"], report, now)],
        "channel": [*Channel.objects.filter(name__in=["Shop team", "Billing", "Accounts"]).order_by("-name")],
        **store_alerts(schedules, failed, now),
        "pause": [
            PauseFactory(
                name="shop.archive_logs",
                reason="The disk of the archive is full until Monday",
                paused_by="anna",
                ends_at=now + timedelta(days=2),
            )
        ],
        "limitkey": [LimitPlaceFactory(limit__name="shop.import_orders", limit__key="de").limit],
        "loweredlimit": [LoweredLimitFactory(name="shop.import_orders")],
        "event": [EventFactory(topic="invoice.due", metadata={"customer": "Contoso", "invoice": 4711})],
        "breaker": [
            BreakerFactory(
                name="shop.sync_stock", since=now - timedelta(minutes=14), probed_at=now - timedelta(seconds=40)
            ),
            BreakerFactory(name="shop.refresh_tokens", closed=True, since=now - timedelta(minutes=38), openings=2),
        ],
        "apitoken": _tokens(anna, now),
        "process": _processes(now),
        "report": [Report.objects.get(controller="shop.revenue")],
        "artefact": [
            artefact_of(executions[-1], filename="revenue-2026-11-21.csv", size=48_213, rows=1_204, checksum="5e" * 32)
        ],
        "user": [anna],
        "group": [Group.objects.get(name="operator")],
    }


def _pings(failed: SchedulerExecution, now: datetime) -> None:
    """Monitors that were told of a failed run, and one that was not."""
    Scheduler.objects.filter(pk=failed.scheduler_id).update(ping_url="https://hc-ping.com/invented")
    begun = {"begun_at": now - timedelta(minutes=9), "created_at": now - timedelta(minutes=9)}
    PingFactory(execution=failed, event="start", host="hc-ping.com", **begun)
    PingFactory(execution=failed, event="start", kind="sentry", host="o1.ingest.sentry.io", **begun)
    PingFactory(execution=failed, event="fail", dropped=True)
    PingFactory(execution=failed, event="fail", kind="sentry", waiting=True)


def _calendar(orders: Scheduler, daily: Scheduler, now: datetime) -> Calendar:
    """A calendar that leaves out the runs of one schedule, and holds those of others."""
    found: Calendar = CalendarFactory(
        name="Holidays DE", description="Public holidays, and the days on which the depot is closed",
        timezone="Europe/Berlin",
        entries="# public holidays\nevery 01-01 New Year\nevery 05-01 Labour Day\nevery 10-03 Unity Day\n"
        "every 12-25..12-26 Christmas\n2027-03-26 Good Friday\n2027-03-29 Easter Monday\n\n# the depot\n"
        "sun closed on Sundays\nevery 12-24 12:00-24:00 early closing\n2027-02-15..2027-02-19 stocktaking",
    )  # fmt: skip
    for row, what in ((orders, "skip"), (daily, "hold")):
        row.refresh_from_db()
        row.calendar, row.on_excluded = found, what
        row.save()
    store_rules(found, now)
    return found


def _users() -> tuple[User, User]:
    anna = UserFactory(username="anna", first_name="Anna", last_name="Schmidt", superuser=True)
    ben = UserFactory(username="ben", first_name="Ben", last_name="Okafor")
    ben.groups.add(Group.objects.get(name="operator"))
    vera = UserFactory(username="vera")
    vera.groups.add(Group.objects.get(name="viewer"))
    return anna, ben


def _other_targets(now: datetime) -> tuple[Scheduler, Reminder]:
    """A schedule of a report, one of a reminder, and one that runs only once."""
    zone: dict[str, Any] = {"timezone": "Europe/Berlin"}
    daily = Scheduler.objects.create(
        description="Revenue by shop, each morning", report=Report.objects.get(controller="shop.revenue"),
        schedule="0 6 * * *", params={"days": 1}, **zone,
    )  # fmt: skip
    review = Report.objects.get(controller="failure_review")
    Scheduler.objects.create(description="Review of the failures", report=review, schedule="0 7 * * 1", **zone)
    reminder = Reminder.objects.create(
        name="Stand-up", subject="Stand-up in ten minutes", body="Room 4, or the usual link.",
        recipients="team@example.org\nanna@example.org",
    )  # fmt: skip
    room = Channel.objects.create(name="Shop team", description="The room of the shop team in Slack",
                                  address="slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7Q")  # fmt: skip
    Channel.objects.create(name="On call", description="", address="${CRON_CHAT_ON_CALL}")
    Channel.objects.create(name="Billing", kind="webhook", address="https://billing.example.org/cron",
                           secret="${CRON_WEBHOOK_BILLING}")  # fmt: skip
    Channel.objects.create(name="Accounts", kind="email", recipients="anna@example.org\nben@example.org")
    reminder.channels.add(room)
    Scheduler.objects.create(description="Remind the team", reminder=reminder, schedule="50 8 * * 1-5", **zone)
    Scheduler.objects.create(description="Inventory at the end of the year", report=daily.report,
                             date_time=(now + timedelta(days=39)).replace(microsecond=0), **zone)  # fmt: skip
    return daily, reminder


def _executions(schedules: dict[str, Scheduler], report: Scheduler, now: datetime) -> list[SchedulerExecution]:
    """Executions that run, retry, wait, were skipped by a pause, or were run by hand."""
    index, stock = schedules["Rebuild the search index"], schedules["Stock of warehouse Lyon"]
    make = SchedulerExecutionFactory
    due = now - timedelta(minutes=4)
    recent: dict[str, Any] = {"scheduled_at": due, "executed_at": due, "published_at": due}
    running = make(running=True, scheduler=index, consumer=CONSUMER, started_at=now - timedelta(minutes=4),
                   progress="62/100 products", **recent)  # fmt: skip
    lines = "".join(
        f"{now - timedelta(minutes=4) + timedelta(seconds=6 * n):%Y-%m-%dT%H:%M:%S}.000Z INFO part {n} of 100\n"
        for n in range(1, 39)
    )
    Output.objects.create(execution=running, attempt=1, sequence=0, text=lines, created_at=now)
    make(running=True, scheduler=schedules["Customers export"], consumer=CONSUMER, trigger="manual",
         requested_by="ben", params={"seconds": 45}, started_at=now - timedelta(seconds=25), **recent)  # fmt: skip
    retrying = make(retrying=True, scheduler=stock, consumer=CONSUMER, **recent)
    AttemptFactory(execution=retrying, number=1, error_class="ConnectionError", error_message="no route to host",
                   retry_at=now + timedelta(seconds=30))  # fmt: skip
    queued = make(scheduler=schedules["Stock of warehouse Milan"], **recent)
    paused = make(
        skipped=True,
        scheduler=schedules["Archive log files"],
        missed=5,
        scheduled_at=now - timedelta(hours=30),
        published_at=None,
        reason="Paused by anna from 2026-11-16 09:10 to 2026-11-21 07:30 UTC: storage full. 5 occurrences did not run.",
    )
    by_hand = ManualExecutionFactory(succeeded=True, scheduler=schedules["Send invoices"], requested_by="ben",
                                     params={"batch": 20})  # fmt: skip
    _from_another_client(schedules["Send invoices"], now)
    _that_waits(schedules["Import orders UK"], now)
    store_batch(schedules["Send invoices"], CONSUMER, now)
    service, left_out = _of_the_service(schedules["Listen for events of the warehouse"], now)
    morning = now - timedelta(hours=11)
    reported = make(succeeded=True, scheduler=report, scheduled_at=morning, executed_at=morning, published_at=morning,
                    started_at=morning + timedelta(seconds=1), finished_at=morning + timedelta(seconds=19))  # fmt: skip
    return [running, retrying, queued, paused, by_hand, service, left_out, reported]


def _of_the_service(schedule: Scheduler, now: datetime) -> list[SchedulerExecution]:
    """A service that runs since the day before yesterday, and the occurrences that were left out because of it."""
    began = now - timedelta(days=2)
    run = SchedulerExecutionFactory(
        running=True, scheduler=schedule, queue="standalone", consumer="shop-worker-3-8181-93ac", attempt=3,
        scheduled_at=began, executed_at=began, published_at=began, started_at=now - timedelta(hours=31),
    )  # fmt: skip
    for number, error in ((1, ""), (2, "ConnectionResetError")):
        ended = began + timedelta(hours=number * 8)
        AttemptFactory(
            execution=run, number=number, outcome="failed" if error else "succeeded", error_class=error,
            error_message="the warehouse has closed the connection" if error else "", finished_at=ended,
            started_at=ended - timedelta(hours=7), retry_at=ended + timedelta(seconds=30),
        )  # fmt: skip
    skip = SchedulerExecutionFactory(
        skipped=True, scheduler=schedule, missed=2_879, published_at=None, scheduled_at=began + timedelta(minutes=1),
        executed_at=now - timedelta(seconds=20),
        reason=f"Left out, because the service was running already, as execution {run.pk}.",
    )  # fmt: skip
    Scheduler.objects.filter(pk=schedule.pk).update(open_run=run.pk, open_skip=skip.pk)
    return [run, skip]


def _that_waits(schedule: Scheduler, now: datetime) -> None:
    """A run that waits for its turn, of a schedule whose runs have all bounds."""
    run = SchedulerExecutionFactory(
        running=True, scheduler=schedule, attempt=1, consumer=CONSUMER, scheduled_at=now - timedelta(minutes=22)
    )
    waits = SchedulerExecutionFactory(
        blocked=True, scheduler=schedule, scheduled_at=now - timedelta(minutes=2), start_by=now + timedelta(minutes=13),
        reason=f"It waits until execution {run.pk} is over.",
    )  # fmt: skip
    Scheduler.objects.filter(pk=schedule.pk).update(
        overlap="wait", open_run=run.pk, waiting_run=waits.pk, start_within_seconds=900, max_runs=5_000,
        runs_counted=1_284, counted_for=5_000, pause_after_failures=3,
    )  # fmt: skip


def _from_another_client(schedule: Scheduler, now: datetime) -> None:
    """An execution of a message that two consumers of another program had rejected, and that waited in between."""
    due = now - timedelta(minutes=5)
    row = ManualExecutionFactory(
        succeeded=True, scheduler=schedule, trigger="message", execution_key="message-4711", scheduled_at=due,
        executed_at=due, published_at=due, started_at=due, finished_at=due + timedelta(seconds=10),
    )  # fmt: skip
    common = {"exchange": "cron_dlx", "time": (now - timedelta(minutes=7)).isoformat()}
    DeathRecordFactory(
        execution=row,
        entries=[
            {"queue": "cron_scheduler_retry", "reason": "expired", "count": 2, "routing-keys": ["retry"], **common},
            {
                **common, "queue": "cron_scheduler", "reason": "rejected", "count": 2, "exchange": "",
                "routing-keys": ["cron_scheduler"],
            },
        ],
    )  # fmt: skip


def _tokens(anna: User, now: datetime) -> list[ApiToken]:
    """Tokens in each state, of two users. The first one is live."""
    ben = User.objects.get(username="ben")
    few = ["scheduling.view_scheduler", "scheduling.view_schedulerexecution", "scheduling.run_scheduler"]
    return [
        ApiTokenFactory(user=anna, name="release pipeline", permissions=few, last_used_at=now - timedelta(minutes=3),
                        created_at=now - timedelta(days=20), expires_at=now + timedelta(days=70)),
        ApiTokenFactory(user=ben, name="dashboard of the shop", read_only=True, last_used_at=now - timedelta(hours=5),
                        created_at=now - timedelta(days=200)),
        ApiTokenFactory(user=ben, name="republish by script", created_at=now - timedelta(days=100),
                        expires_at=now - timedelta(days=10)),
        ApiTokenFactory(user=anna, name="old pipeline", created_at=now - timedelta(days=90), revoked_by="anna",
                        revoked_at=now - timedelta(days=20)),
    ]  # fmt: skip


def _processes(now: datetime) -> list[Process]:
    last = (now - timedelta(seconds=6)).isoformat()
    busy = {"queue": "main", "runs": 1_318, "running": 2}
    rows = [
        ProcessFactory(producer=True, host="shop-web-1", container_id="shop-web-1-17-aa01",
                       info={"claimed": 2_210, "last_dispatch": last}),
        ProcessFactory(producer=True, host="shop-web-2", container_id="shop-web-2-17-bb02",
                       info={"claimed": 1_987, "last_dispatch": last}),
        ProcessFactory(host="shop-worker-1", container_id=CONSUMER, concurrency=4, info=busy),
        ProcessFactory(host="shop-worker-2", container_id="shop-worker-2-4242-77de", concurrency=4, info=busy,
                       code_at=now - timedelta(hours=5), code_changed_at=now - timedelta(minutes=20)),
        ProcessFactory(host="shop-listener", container_id="shop-listener-9-12ab", concurrency=1,
                       info={"queue": "standalone", "runs": 3, "running": 0}),
        ProcessFactory(host="shop-worker-3", container_id="shop-worker-3-4242-0c1d", silent=True, info=busy),
        ProcessFactory(host="shop-worker-4", container_id="shop-worker-4-4242-5e6f", stopped=True, info=busy),
    ]  # fmt: skip
    return rows[2:3]


def _replays(anna: User, schedules: dict[str, Scheduler], now: datetime) -> list[Replay]:
    """A replay that sends, because its canary has succeeded; one that its failed canary has stopped; and an old one."""
    orders = SchedulerExecution.objects.filter(scheduler=schedules["Import orders DE"]).order_by("-pk")
    sent = list(orders.filter(state="succeeded")[:4])
    left = list(orders.filter(state="failed")[:5])
    invoices = schedules["Send invoices"]
    failed = SchedulerExecution.objects.filter(scheduler=invoices, state="failed").latest("pk")
    common: dict[str, Any] = {"user": anna, "requested_by": "anna"}
    good = {"canary": sent[0].pk, "canary_attempt": 0}
    open_, *_others = [
        Replay.objects.create(
            key=uuid.uuid4(), created_at=now - timedelta(minutes=9),
            selection=f"all failures with PaymentGatewayTimeout (error group {left[0].fingerprint[:12]})", minutes=10,
            state="released", total=9, position=4, sent=4, next_at=now + timedelta(minutes=1), **good, **common,
        ),
        Replay.objects.create(
            key=uuid.uuid4(), created_at=now - timedelta(days=1), state="stopped",
            selection="all failures with error_class=KeyError",
            total=40, position=1, sent=1, finished_at=now - timedelta(hours=23), canary=failed.pk,
            canary_attempt=failed.attempt - 1, reason=CANARY_FAILED_WITH.format(error="KeyError 'currency'"), **common,
        ),
        Replay.objects.create(
            key=uuid.uuid4(), created_at=now - timedelta(days=3), selection="chosen one by one", state="done", total=12,
            position=12, sent=11, skipped=1, finished_at=now - timedelta(days=3), **good, **common,
        ),
    ]  # fmt: skip
    items = [*([run.pk, 0] for run in sent), *([run.pk, run.attempt] for run in left)]
    ReplayChunk.objects.create(replay=open_, first=0, items=items)
    return [open_]


def _edits(anna: User, schedules: dict[str, Scheduler], now: datetime) -> None:
    orders = schedules["Import orders DE"]
    added: Any = [{"added": {}}]
    LogEntry.objects.log_actions(anna.pk, [orders], ADDITION, change_message=added)
    LogEntry.objects.update(action_time=now - timedelta(days=20))
    _entry(anna, orders, now - timedelta(days=2), "", Change("schedule", "15 8 * * 1-6", "15 8,12,16,20 * * 1-6"),
           Change("params.since_days", "1", "2"))  # fmt: skip
    _entry(anna, schedules["Exchange rates, second source"], now - timedelta(days=2, hours=5), "",
           Change("status", "yes", "no"), Change("pause_reason", None, "They block us; ticket SHOP-4711."))  # fmt: skip
    run = SchedulerExecution.objects.filter(scheduler=orders, state="failed").latest("pk")
    _entry(anna, run, now - timedelta(minutes=40), "republish", Change("params.since_days", "2", "1"))


def _entry(user: User, row: models.Model, at: datetime, text: str, *edits: Change) -> None:
    (entry,) = LogEntry.objects.log_actions(user.pk, [row], CHANGE, change_message=audit.message(text, edits))
    LogEntry.objects.filter(pk=entry.pk).update(action_time=at)


def keep_alive(began: datetime, now: datetime) -> None:
    """Do what the processes of the installation would do meanwhile: renew heartbeats and leases, and plan next runs.

    Args:
        began: when the installation was stored. What was silent or late then stays so.
    """
    old = now - timedelta(seconds=100)
    Process.objects.filter(stopped_at=None, heartbeat_at__gte=min(old, began - timedelta(seconds=100))).update(
        heartbeat_at=now
    )
    SchedulerExecution.objects.filter(state="running").update(wake_at=now + timedelta(seconds=15))
    for row in Scheduler.objects.filter(status=True, next_run_at__gte=began, next_run_at__lt=now):
        following = first_run(row.schedule, row.date_time, row.zone_name, now)
        Scheduler.objects.filter(pk=row.pk).update(next_run_at=following)
