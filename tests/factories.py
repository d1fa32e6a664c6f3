"""Factories (factory-boy) that make rows for tests. The columns of each row fit its state."""

from __future__ import annotations

import hashlib
import uuid
from copy import copy
from datetime import datetime, timedelta
from typing import Any

import factory
from django.contrib.auth.models import Group, Permission, User
from django.utils import timezone as clock
from factory.django import DjangoModelFactory

from reports.models import Report
from scheduling.core.alerts import open_key
from scheduling.core.api_secret import digest_of, prefix_of
from scheduling.core.fingerprint import fingerprint
from scheduling.core.lifecycle import State
from scheduling.core.tallies import Total
from scheduling.models import (
    Alert,
    AlertMessage,
    AlertNotice,
    AlertRule,
    AlertWatch,
    AnsweredRequest,
    ApiToken,
    Attempt,
    Backfill,
    Breaker,
    Calendar,
    Channel,
    DeathRecord,
    Event,
    FailedExecution,
    HandlerSet,
    KnownErrorGroup,
    KnownHandler,
    LimitKey,
    LimitPlace,
    LoweredLimit,
    MovedRun,
    Notification,
    Output,
    Pause,
    Ping,
    Process,
    RefusedRow,
    Reminder,
    RunStep,
    Scheduler,
    SchedulerExecution,
    StartDeadline,
    Tally,
    TallyMark,
    TallyTotal,
    UncountedSkip,
    Worker,
    ZoneData,
)

PASSWORD = "correct horse battery staple"


class UserFactory(DjangoModelFactory):
    """A staff user without any permission.

    `UserFactory(permissions=["scheduling.view_scheduler", ...])` grants the listed permissions.
    `superuser=True` grants all permissions.
    """

    class Meta:
        model = User
        skip_postgeneration_save = True

    class Params:
        superuser = factory.Trait(is_superuser=True)

    username = factory.Sequence(lambda n: f"user{n}")
    email = factory.LazyAttribute(lambda user: f"{user.username}@example.com")
    password = factory.django.Password(PASSWORD)
    is_staff = True

    @factory.post_generation
    def permissions(self, create: bool, extracted: Any, **_kwargs: Any) -> None:
        """Grant permissions by name, such as `scheduling.view_scheduler`. An unknown name is an error."""
        for name in extracted or ():
            app_label, _, codename = name.partition(".")
            self.user_permissions.add(  # type: ignore[attr-defined]
                Permission.objects.get(content_type__app_label=app_label, codename=codename)
            )


class GroupFactory(DjangoModelFactory):
    """A group without permissions."""

    class Meta:
        model = Group

    name = factory.Sequence(lambda n: f"group{n}")


class WorkerFactory(DjangoModelFactory):
    """The row of a registered worker. `migrate` has already made most of these rows."""

    class Meta:
        model = Worker
        django_get_or_create = ("name",)

    name = "tests.noop"


class ReportFactory(DjangoModelFactory):
    """The row of a report. By default, its controller is not registered."""

    class Meta:
        model = Report
        django_get_or_create = ("controller",)

    controller = factory.Sequence(lambda n: f"tests.report{n}")
    title = factory.LazyAttribute(lambda report: f"Report {report.controller}")


class ChannelFactory(DjangoModelFactory):
    """A channel. A message to it is refused before a connection is made, because its host is internal."""

    class Meta:
        model = Channel

    name = factory.Sequence(lambda n: f"channel{n}")
    description = "The team's chat"
    address = "json://127.0.0.1:9/channel-token"

    class Params:
        webhook = factory.Trait(
            kind="webhook", address="https://127.0.0.1:9/channel-token", secret="cronhook_of_the_tests"
        )
        email = factory.Trait(kind="email", address="", recipients="team@example.com\nben@example.com")


class CalendarFactory(DjangoModelFactory):
    """A calendar in UTC that excludes Christmas."""

    class Meta:
        model = Calendar

    name = factory.Sequence(lambda n: f"Calendar {n}")
    timezone = "UTC"
    entries = "every 12-25 Christmas"


class AlertRuleFactory(DjangoModelFactory):
    """A rule about the inbox, without channels of its own. `migrate` has made a rule of each kind."""

    class Meta:
        model = AlertRule

    name = factory.Sequence(lambda n: f"rule{n}")
    kind, severity = "inbox", "warning"


class AlertFactory(DjangoModelFactory):
    """An open alert that no channel was told of. Traits: `acknowledged`, `muted`, `over`."""

    class Meta:
        model = Alert

    class Params:
        acknowledged = factory.Trait(acknowledged_at=factory.LazyFunction(clock.now), acknowledged_by="another user")
        muted = factory.Trait(
            muted_until=factory.LazyFunction(lambda: clock.now() + timedelta(hours=1)), muted_by="another user",
            mute_reason="The warehouse moves",
        )  # fmt: skip
        over = factory.Trait(ended_at=factory.LazyFunction(clock.now), open_key=None)

    rule = factory.SubFactory(AlertRuleFactory)
    rule_name = factory.LazyAttribute(lambda alert: alert.rule.name if alert.rule else "deleted rule")
    kind, severity = "inbox", "critical"
    key = factory.Sequence(lambda n: f"subject {n}")
    open_key = factory.LazyAttribute(lambda alert: open_key(alert.rule.pk if alert.rule else 0, alert.key))
    subject, seen = "failed inbox", "Failures in the inbox: 12. The limit is 10."
    advice = "Fix the cause, then republish."
    started_at = factory.LazyFunction(lambda: clock.now() - timedelta(minutes=10))
    seen_at = factory.LazyFunction(clock.now)


class AlertMessageFactory(DjangoModelFactory):
    """A message that was sent. Traits: `given_up`, `waiting`."""

    class Meta:
        model = AlertMessage

    class Params:
        given_up = factory.Trait(state="given_up", tries=99, error="The webhook answered 500: no text")
        waiting = factory.Trait(
            state="waiting", tries=3, repeats=1, error="The server did not answer.", ended_at=None,
            next_try_at=factory.LazyFunction(lambda: clock.now() + timedelta(minutes=3)),
        )  # fmt: skip

    channel = factory.SubFactory(ChannelFactory)
    channel_name = factory.LazyAttribute(lambda message: message.channel.name)
    delivery_id = factory.Sequence(lambda n: f"{n:032x}")
    state, tries = "sent", 1
    created_at = factory.LazyFunction(lambda: clock.now() - timedelta(minutes=9))
    ended_at = factory.LazyFunction(clock.now)


class AlertNoticeFactory(DjangoModelFactory):
    """The start of an alert, which a message has told."""

    class Meta:
        model = AlertNotice

    alert = factory.SubFactory(AlertFactory)
    message = factory.SubFactory(AlertMessageFactory)
    channel = factory.SelfAttribute("message.channel")
    event = "start"


class AlertWatchFactory(DjangoModelFactory):
    """The rules are evaluated at this moment."""

    class Meta:
        model = AlertWatch
        django_get_or_create = ("pk",)

    pk = 1
    holder = "host-1-abc"
    evaluated_at = factory.LazyFunction(lambda: int(clock.now().timestamp()))


class ReminderFactory(DjangoModelFactory):
    """A reminder to one address."""

    class Meta:
        model = Reminder

    name = factory.Sequence(lambda n: f"reminder{n}")
    subject = "Stand-up"
    recipients = "team@example.com"


class NotificationFactory(DjangoModelFactory):
    """A message of an execution that one recipient has got."""

    class Meta:
        model = Notification

    kind, state, attempt, tries = "email", "sent", 1, 1
    recipient = factory.Sequence(lambda n: f"recipient{n}@example.com")
    key = factory.Sequence(lambda n: f"{n:064}")
    message_id = factory.Sequence(lambda n: f"<reminder-{n}@example.com>")
    changed_at = factory.LazyFunction(clock.now)


class PingFactory(DjangoModelFactory):
    """A ping that a monitor has got. `waiting` and `dropped` are others."""

    class Meta:
        model = Ping

    class Params:
        waiting = factory.Trait(state="waiting", host="", error="The server answered 503: no text")
        dropped = factory.Trait(state="dropped", host="", error="The server answered 404: no such check")

    scheduler_id = factory.LazyAttribute(lambda ping: ping.execution.scheduler_id or 1)
    kind, event, attempt, tries, state, host = "healthchecks", "success", 1, 1, "sent", "monitor.example.com"
    run_id = factory.LazyFunction(uuid.uuid4)
    begun_at = created_at = at = factory.LazyFunction(clock.now)


class SchedulerFactory(DjangoModelFactory):
    """A daily schedule of the worker `tests.noop`. `handler="tests.fail"` chooses another worker.

    Traits: `rare` (due once a year, so no producer claims it by chance during a test), `once` (due only once, in
    24 hours), `of_report`, `of_reminder`, `off`.
    """

    class Meta:
        model = Scheduler

    class Params:
        once = factory.Trait(schedule="", date_time=factory.LazyFunction(lambda: clock.now() + timedelta(days=1)))
        of_report = factory.Trait(worker=None, report=factory.SubFactory(ReportFactory))
        of_reminder = factory.Trait(worker=None, reminder=factory.SubFactory(ReminderFactory))
        off = factory.Trait(status=False)
        rare = factory.Trait(schedule="0 0 1 1 *")
        handler = "tests.noop"

    description = factory.Sequence(lambda n: f"Schedule {n}")
    schedule = "0 8 * * *"
    worker = factory.SubFactory(WorkerFactory, name=factory.SelfAttribute("..handler"))


class ZoneDataFactory(DjangoModelFactory):
    """Zone data that no process has."""

    class Meta:
        model = ZoneData

    digest = factory.Sequence(lambda n: f"{n:064d}")
    version = "2001a"
    offsets = factory.LazyFunction(lambda: {"Europe/Madrid": [[0, 3600]]})
    first_used_at = factory.LazyFunction(clock.now)
    done_at = factory.LazyFunction(clock.now)
    passes = 1


class MovedRunFactory(DjangoModelFactory):
    """The next run of a schedule, an hour later than before."""

    class Meta:
        model = MovedRun

    zone_data = factory.SubFactory(ZoneDataFactory)
    scheduler = factory.SubFactory(SchedulerFactory)
    timezone = "Europe/Madrid"
    old_at = factory.LazyFunction(lambda: clock.now() + timedelta(hours=1))
    new_at = factory.LazyFunction(lambda: clock.now() + timedelta(hours=2))
    moved_at = factory.LazyFunction(clock.now)


class BackfillFactory(DjangoModelFactory):
    """A backfill of the last two days of a daily schedule. One of its three instants is done with.

    Traits: `paused`, `over`.
    """

    class Meta:
        model = Backfill

    class Params:
        paused = factory.Trait(state="paused")
        over = factory.Trait(state="done", position=3, finished_at=factory.LazyFunction(clock.now), next_at=None)

    request = factory.LazyFunction(uuid.uuid4)
    scheduler = factory.SubFactory(SchedulerFactory)
    group = factory.LazyAttribute(lambda row: row.scheduler and row.scheduler.group)
    requested_by = "another user"
    created_at = factory.LazyFunction(clock.now)
    reason = "The depot was closed"
    since = factory.LazyFunction(lambda: clock.now() - timedelta(days=3))
    until = factory.LazyFunction(clock.now)
    timezone = "Europe/Madrid"
    instants = factory.LazyAttribute(
        lambda row: [int(row.until.timestamp()) // 60 * 60 - day * 86_400 for day in (3, 2, 1)]
    )
    total = 3
    position = 1
    created = 1
    next_at = factory.LazyFunction(lambda: clock.now() + timedelta(hours=1))


def due(row: Scheduler, instant: datetime) -> Scheduler:
    """Set `next_run_at` of a schedule to an instant, and return the schedule.

    The instant may be in the past. The schedule then has had its times for long.
    """
    Scheduler.objects.filter(pk=row.pk).update(next_run_at=instant, planned_at=None)
    row.refresh_from_db()
    return row


def _ago(seconds: float) -> Any:
    return factory.LazyFunction(lambda: clock.now() - timedelta(seconds=seconds))


class SchedulerExecutionFactory(DjangoModelFactory):
    """A queued execution. For every other state, there is a trait with the name of the state, such as `failed=True`.

    The columns of the target come from the scheduler. A failed execution has an error with its fingerprint;
    `error_class` and `error_message` choose another error. To make attempts, use AttemptFactory.
    """

    class Meta:
        model = SchedulerExecution

    class Params:
        claimed = factory.Trait(state=State.CLAIMED.value, published_at=None)
        blocked = factory.Trait(
            state=State.BLOCKED.value, published_at=None, reason="It waits until execution 7 is over."
        )
        running = factory.Trait(
            state=State.RUNNING.value,
            attempt=1,
            consumer="host-1-aaaa",
            pid=4242,
            started_at=_ago(30),
            wake_at=factory.LazyFunction(lambda: clock.now() + timedelta(seconds=15)),
        )
        retrying = factory.Trait(
            state=State.RETRYING.value,
            attempt=1,
            consumer="host-1-aaaa",
            started_at=_ago(40),
            wake_at=factory.LazyFunction(lambda: clock.now() + timedelta(seconds=30)),
            error_class="ConnectionError",
            error_message="no route to host",
            reason="Retry 1 of 3 follows.",
        )
        succeeded = factory.Trait(
            state=State.SUCCEEDED.value,
            attempt=1,
            consumer="host-1-aaaa",
            started_at=_ago(40),
            finished_at=_ago(30),
            wake_at=None,
        )
        failed = factory.Trait(
            state=State.FAILED.value,
            attempt=4,
            consumer="host-1-aaaa",
            started_at=_ago(40),
            finished_at=_ago(30),
            wake_at=None,
            error_class="ValueError",
            error_message="the invoice has no total",
            fingerprint=factory.LazyAttribute(lambda row: fingerprint(row.error_class, row.error_message)),
            reason="All 3 retries have been used.",
        )
        cancelled = factory.Trait(
            state=State.CANCELLED.value, finished_at=_ago(30), wake_at=None, reason="Cancelled by another user."
        )
        discarded = factory.Trait(
            state=State.DISCARDED.value,
            attempt=4,
            started_at=_ago(40),
            finished_at=_ago(30),
            wake_at=None,
            reason="Discarded by another user: it is known.",
        )
        skipped = factory.Trait(
            state=State.SKIPPED.value,
            finished_at=_ago(30),
            wake_at=None,
            missed=3,
            reason="Missed 3 occurrences: no producer was running.",
        )

    scheduler = factory.SubFactory(SchedulerFactory)
    # Each new execution is due one minute before the previous one, so the executions have different instants.
    scheduled_at = factory.Sequence(
        lambda n: (clock.now() - timedelta(minutes=n % 1_000_000)).replace(second=0, microsecond=0)
    )
    execution_key = factory.Sequence(lambda n: f"cron-test-{n}")
    trigger = "cron"
    type = factory.LazyAttribute(lambda row: row.scheduler.target_type if row.scheduler else "worker")
    target_id = factory.LazyAttribute(lambda row: row.scheduler.target_id if row.scheduler else None)
    target_name = factory.LazyAttribute(
        lambda row: getattr(row.scheduler.target, "handler_name", "") if row.scheduler else "tests.noop"
    )
    params = factory.LazyAttribute(lambda row: dict(row.scheduler.params) if row.scheduler else {})
    executed_at = _ago(60)
    container_id = "host-0-producer"
    state = State.QUEUED.value
    wake_at = factory.LazyFunction(clock.now)
    published_at = _ago(60)


class ManualExecutionFactory(SchedulerExecutionFactory):
    """An execution that an operator has just requested. Its schedule is due only once a year."""

    scheduler = factory.SubFactory(SchedulerFactory, rare=True)
    trigger = "manual"
    execution_key = factory.LazyFunction(lambda: f"manual-{uuid.uuid4()}")
    scheduled_at = factory.LazyFunction(clock.now)
    executed_at = factory.LazyFunction(clock.now)
    published_at = factory.LazyFunction(clock.now)

    @classmethod
    def bulk(cls, count: int, scheduler: Scheduler | None = None, **columns: Any) -> list[SchedulerExecution]:
        """Make `count` executions of one schedule with one insert, and return them with their primary keys."""
        scheduler = scheduler or SchedulerFactory(rare=True)
        first = cls.build(scheduler=scheduler, **columns)
        rows = [copy(first) for _ in range(count)]  # copying is fast; a call of the factory takes milliseconds
        for row in rows[1:]:
            row.execution_key = f"manual-{uuid.uuid4()}"
        SchedulerExecution.objects.bulk_create(rows)
        if rows and rows[0].pk is None:  # MySQL returns no primary keys for a bulk insert
            keys = [row.execution_key for row in rows]
            found = {row.execution_key: row for row in SchedulerExecution.objects.filter(execution_key__in=keys)}
            return [found[key] for key in keys]
        return rows


class FailedExecutionFactory(SchedulerExecutionFactory):
    """A failed execution, as an instance of the proxy model FailedExecution."""

    class Meta:
        model = FailedExecution

    failed = True


class PauseFactory(DjangoModelFactory):
    """A pause of a worker, until a user ends it. `of_queue` and `of_site` pause a queue and everything."""

    class Meta:
        model = Pause

    class Params:
        of_queue = factory.Trait(scope="queue", type="", name=factory.Sequence(lambda n: f"paused{n}"))
        of_site = factory.Trait(scope="site", type="", name="")
        ended = factory.Trait(ends_at=_ago(5))

    scope = "handler"
    type = "worker"
    name = factory.Sequence(lambda n: f"tests.paused{n}")
    reason = "The warehouse moves"
    paused_by = "ann"
    paused_at = _ago(60)
    ends_at = None


class BreakerFactory(DjangoModelFactory):
    """The circuit breaker of a worker, which is open. `closed` is one that has closed again."""

    class Meta:
        model = Breaker

    class Params:
        closed = factory.Trait(state="closed", reason="", error="", probed_at=None)

    type = "worker"
    name = factory.Sequence(lambda n: f"tests.broken{n}")
    state = "open"
    since = _ago(10)
    reason = "8 of 10 runs within 60 s have failed."
    error = "builtins.ConnectionError: the depot does not answer"
    openings = 1
    probed_at = _ago(1)
    used_at = _ago(1)


class LimitKeyFactory(DjangoModelFactory):
    """A key of a limited worker that was used a minute ago."""

    class Meta:
        model = LimitKey

    type = "worker"
    name = "tests.one_of_each_key"
    key = factory.Sequence(lambda n: f"region{n}")
    digest = factory.LazyAttribute(lambda row: hashlib.sha256(row.key.encode()).hexdigest())
    used_at = _ago(60)


class LimitPlaceFactory(DjangoModelFactory):
    """The place of a run that waits for it since ten seconds."""

    class Meta:
        model = LimitPlace

    limit = factory.SubFactory(LimitKeyFactory)
    execution = factory.SubFactory("tests.factories.SchedulerExecutionFactory")
    state = "waiting"
    since = _ago(10)


class LoweredLimitFactory(DjangoModelFactory):
    """A limit that a user has lowered to one run at once."""

    class Meta:
        model = LoweredLimit

    type = "worker"
    name = factory.Sequence(lambda n: f"tests.lowered{n}")
    at_once = 1
    reason = "The depot is slow today"
    lowered_by = "ann"
    lowered_at = _ago(60)


def secret_of(number: int) -> str:
    """Return the secret of the token that `ApiTokenFactory` made with this number."""
    return f"cron_{number:08}_{'s' * 43}"


class ApiTokenFactory(DjangoModelFactory):
    """A live token of a user of its own. Its `secret` opens it."""

    class Meta:
        model = ApiToken

    class Params:
        expired = factory.Trait(expires_at=_ago(5))
        revoked = factory.Trait(revoked_at=_ago(5), revoked_by="ann")
        number = factory.Sequence(int)
        secret = factory.LazyAttribute(lambda row: secret_of(row.number))

    user = factory.SubFactory(UserFactory)
    name = factory.Sequence(lambda n: f"pipeline {n}")
    prefix = factory.LazyAttribute(lambda row: prefix_of(row.secret))
    digest = factory.LazyAttribute(lambda row: digest_of(row.secret))


class AnsweredRequestFactory(DjangoModelFactory):
    """The answer to a request with an Idempotency-Key."""

    class Meta:
        model = AnsweredRequest

    owner = "user:1"
    key = factory.Sequence(lambda n: f"request {n}")
    key_digest = factory.LazyAttribute(lambda row: AnsweredRequest.digest_of(row.owner, row.key))
    request_digest = "0" * 64
    status = 201
    body = '{"id": 7}'


class EventFactory(DjangoModelFactory):
    """An event that waits, and its execution."""

    class Meta:
        model = Event

    execution = factory.SubFactory(
        "tests.factories.SchedulerExecutionFactory", scheduler=None, target_name="event", trigger="code"
    )
    topic = "tests.invoice_due"
    metadata = factory.Dict({"customer": 42})


class AttemptFactory(DjangoModelFactory):
    """An attempt that failed after ten seconds."""

    class Meta:
        model = Attempt

    execution = factory.SubFactory(SchedulerExecutionFactory, failed=True)
    number = factory.Sequence(lambda n: n + 1)
    started_at = _ago(40)
    finished_at = _ago(30)
    consumer = "host-1-aaaa"
    pid = 4242
    outcome = Attempt.Outcome.FAILED
    error_class = factory.Maybe("is_failure", "ValueError", "")
    error_message = factory.Maybe("is_failure", "the invoice has no total", "")
    traceback = ""

    class Params:
        is_failure = factory.LazyAttribute(lambda row: row.outcome != Attempt.Outcome.SUCCEEDED)


class OutputFactory(DjangoModelFactory):
    """One stored piece of an attempt's output."""

    class Meta:
        model = Output

    execution = factory.SubFactory(SchedulerExecutionFactory, succeeded=True)
    attempt = 1
    sequence = factory.Sequence(lambda n: n)
    text = "2026-03-10T12:00:00.000Z INFO it works\n"
    created_at = factory.LazyFunction(clock.now)


class RefusedRowFactory(DjangoModelFactory):
    """An execution that the database refuses to change."""

    class Meta:
        model = RefusedRow

    kind = RefusedRow.Kind.EXECUTION
    row_id = factory.Sequence(lambda n: n + 10**6)
    error = "OperationalError: refused by a trigger"
    since = _ago(600)
    tried_at = _ago(20)


class TallyFactory(DjangoModelFactory):
    """An hour of successful attempts of one schedule."""

    class Meta:
        model = Tally

    key = factory.Sequence(lambda n: f"{n:064}")
    hour = factory.LazyFunction(lambda: clock.now().replace(minute=0, second=0, microsecond=0))
    schedule = 7
    type, target, queue = "worker", "tests.noop", "main"
    outcome, bucket = "succeeded", 0
    attempts, milliseconds = 3, 1_500


class UncountedSkipFactory(DjangoModelFactory):
    """An occurrence that was skipped a moment ago."""

    class Meta:
        model = UncountedSkip

    at = factory.LazyFunction(lambda: int(clock.now().timestamp()))
    reason = "no_producer"
    schedule = 7
    type, target, queue = "worker", "tests.noop", "main"


class StartDeadlineFactory(DjangoModelFactory):
    """The start deadline of an execution, in five minutes."""

    class Meta:
        model = StartDeadline

    execution = factory.Sequence(lambda n: n + 1)
    start_by = factory.LazyFunction(lambda: clock.now() + timedelta(minutes=5))


class TallyTotalFactory(DjangoModelFactory):
    """The successful attempts of one worker."""

    class Meta:
        model = TallyTotal

    key = factory.Sequence(lambda n: f"{n:064}")
    target_key = factory.LazyAttribute(lambda row: Total(row.type, row.target, row.outcome, row.bucket).target_key)
    type, target, outcome, bucket = "worker", "tests.noop", "succeeded", 0
    attempts, milliseconds = 3, 1_500


class TallyMarkFactory(DjangoModelFactory):
    """The mark of the tallies, before the first attempt."""

    class Meta:
        model = TallyMark
        django_get_or_create = ("id",)

    id = 1


class KnownErrorGroupFactory(DjangoModelFactory):
    """An error group that is in the inbox."""

    class Meta:
        model = KnownErrorGroup

    key = factory.Sequence(lambda n: f"{n:064}")


class DeathRecordFactory(DjangoModelFactory):
    """The deaths of a message that was delivered too often."""

    class Meta:
        model = DeathRecord

    execution = factory.SubFactory(SchedulerExecutionFactory, failed=True)
    entries = factory.LazyFunction(
        lambda: [
            {
                "queue": "cron_scheduler_immediate", "reason": "delivery_limit", "count": 1, "exchange": "",
                "routing-keys": ["cron_scheduler_immediate"], "time": "2026-03-10T12:00:00+00:00",
            }
        ]
    )  # fmt: skip


class RunStepFactory(DjangoModelFactory):
    """A finished step of a handler. `RunStepFactory(position=True)` is a position instead."""

    class Meta:
        model = RunStep

    class Params:
        position = factory.Trait(kind=RunStep.Kind.CURSOR)

    execution = factory.SubFactory(SchedulerExecutionFactory, running=True)
    kind = RunStep.Kind.STEP
    name = factory.Sequence(lambda n: f"step {n}")
    value = '{"rows": 7}'
    attempt = 1
    stored_at = _ago(20)


class HandlerSetFactory(DjangoModelFactory):
    """A set of handlers. `HandlerSetFactory(known={"tests.noop": "a"})` maps names of workers to contracts."""

    class Meta:
        model = HandlerSet
        skip_postgeneration_save = True

    digest = factory.Sequence(lambda n: f"{n:064x}")
    created_at = factory.LazyFunction(clock.now)

    @factory.post_generation
    def known(self, create: bool, extracted: dict[str, str] | None, **_kwargs: Any) -> None:
        """Make the handlers."""
        for name, contract in (extracted or {}).items():
            KnownHandler.objects.create(handler_set=self, type="worker", name=name, contract=contract)


class ProcessFactory(DjangoModelFactory):
    """A consumer that is alive. Traits: `producer`, `silent`, `stopped`."""

    class Meta:
        model = Process

    class Params:
        producer = factory.Trait(kind=Process.Kind.PRODUCER, concurrency=0, info={"claimed": 12})
        silent = factory.Trait(heartbeat_at=_ago(600))
        stopped = factory.Trait(stopped_at=_ago(300), heartbeat_at=_ago(300))

    container_id = factory.Sequence(lambda n: f"host-{n}-abcd1234")
    kind = Process.Kind.CONSUMER
    host = "host"
    pid = factory.Sequence(lambda n: n + 1)
    concurrency = 2
    started_at = _ago(3600)
    heartbeat_at = _ago(3)
    info = factory.LazyFunction(lambda: {"queue": "main", "runs": 7, "running": 1})
