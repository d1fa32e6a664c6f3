"""The page /metrics: what it shows, who may read it, and that no counter ever falls."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, InterfaceError, connection
from django.test import Client
from django.utils import timezone as clock

from scheduling.conf import problems
from scheduling.execution import retention
from scheduling.execution.tallying import tally_waiting
from scheduling.metrics import names
from scheduling.models import Attempt, Process, Scheduler, Tally, TallyTotal
from tests.execution.retention import make_executions
from tests.factories import (
    AttemptFactory,
    BreakerFactory,
    FailedExecutionFactory,
    PauseFactory,
    ProcessFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    TallyFactory,
    TallyTotalFactory,
    due,
)
from tests.hostile.values import lenient, write
from tests.metrics.scrape import TOKEN, counters, page, samples, scrape, value

pytestmark = pytest.mark.django_db

MINUTE = timedelta(seconds=60)


@pytest.fixture(autouse=True)
def on(settings: Any) -> None:
    settings.CRON_METRICS_TOKEN = TOKEN


def test_no_counter_falls_by_a_cleanup_or_a_new_process(settings: Any) -> None:
    now = clock.now()
    make_executions("succeeded", 3)
    event = SchedulerExecutionFactory(succeeded=True, scheduler=None, type="worker", target_name="event")
    AttemptFactory(execution=event, number=1, outcome="succeeded", result='{"listeners": 0}')
    first = AttemptFactory(number=1, retry_at=now)
    AttemptFactory(execution=first.execution, number=2)
    tally_waiting(now)
    tally_waiting(now + MINUTE)
    before = scrape()
    name = {"type": "worker", "target": "tests.noop"}
    assert value(before, "job_attempts_total", **name, outcome="failed") == 2
    assert value(before, "job_attempts_total", **name, outcome="succeeded") == 3
    assert value(before, "job_retries_total", **name) == 1
    assert value(before, "job_no_listener_total") == 1
    assert value(before, "job_duration_seconds_bucket", **name, le="1.0") == 3
    assert value(before, "job_duration_seconds_bucket", **name, le="+Inf") == 5
    assert value(before, "job_duration_seconds_sum", **name) == pytest.approx(20, abs=0.1)
    settings.CRON_TALLY_DAYS = "1"
    retention.prune(now + timedelta(days=3))
    Scheduler.objects.all().delete()
    assert not Tally.objects.exists()
    assert Attempt.objects.count() == 3, "the old ones are removed"
    AttemptFactory(number=9)
    tally_waiting(now + 2 * MINUTE)
    tally_waiting(now + 3 * MINUTE)
    later = counters(scrape())
    assert later.keys() >= counters(before).keys()
    assert all(later[key] >= number for key, number in counters(before).items())
    assert value(later, "job_attempts_total", **name, outcome="failed") == 3


@pytest.mark.processes
def test_a_new_process_goes_on_counting(transactional_db: None, tmp_path: Path) -> None:
    TallyTotalFactory(attempts=7)
    program = (
        "import django; django.setup()\n"
        "from django.db import connection; from django.utils import timezone\n"
        f"connection.settings_dict['NAME'] = {str(connection.settings_dict['NAME'])!r}\n"
        "from scheduling.metrics.exposition import exposition\n"
        "print(exposition(timezone.now())[0].decode())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    found = samples(done.stdout)
    assert value(found, "job_attempts_total", type="worker", target="tests.noop", outcome="succeeded") == 7


def test_gauges_of_an_installation() -> None:
    now = clock.now()
    due(SchedulerFactory(schedule="* * * * *"), now - timedelta(seconds=90))
    SchedulerFactory(schedule="* * * * *", queue="reports")
    due(Scheduler.objects.get(queue="reports"), now + timedelta(seconds=30))
    FailedExecutionFactory(finished_at=now - timedelta(seconds=500))
    execution = {"scheduler": None, "wake_at": now}
    for columns in ({}, {"queue": "main.high"}, *[{"wake_at": now + timedelta(hours=1)}] * 4):
        SchedulerExecutionFactory(**{**execution, **columns})
    SchedulerExecutionFactory(running=True, scheduler=None)
    ProcessFactory(concurrency=4, info={"queue": "main", "running": 3})
    ProcessFactory(producer=True)
    ProcessFactory(silent=True)
    BreakerFactory()
    BreakerFactory(closed=True)
    PauseFactory()
    TallyFactory(attempts=10, milliseconds=1_000_000)  # 100 s each
    found = scrape()
    assert value(found, "lag_seconds") == pytest.approx(90, abs=60)
    assert (value(found, "inbox_size"), value(found, "inbox_oldest_seconds") // 100) == (1, 5)
    assert value(found, "executions_open", state="queued", queue="main") == 6
    assert value(found, "executions_open", state="running", queue="main") == 1
    assert value(found, "processes", kind="consumer", state="alive") == 1
    assert value(found, "processes", kind="consumer", state="silent") == 1
    assert value(found, "processes", kind="producer", state="alive") == 1
    assert value(found, "process_heartbeat_age_seconds", kind="consumer") < 60
    assert (value(found, "consumer_slots"), value(found, "consumer_slots_busy")) == (4, 3)
    # One runs, two wait, and five occurrences (one of each minute) are due: 7 times 100 s of work in 300 s.
    assert value(found, "slots_needed", queue="main") == 1 + 3
    assert value(found, "slots_needed", queue="reports") == 1
    assert (value(found, "breakers_open"), value(found, "pauses"), value(found, "held")) == (1, 1, 0)
    assert value(found, "looks_failed") == 0
    said = page()
    for metric in names.INSTALLATION:
        family = metric.name
        assert f"# TYPE {family} {metric.kind}\n" in said
        assert f"# HELP {family} {metric.help}\n" in said


@pytest.mark.django_db(transaction=True)
def test_hostile_rows_hide_only_what_cannot_be_read() -> None:
    rows = [
        (TallyTotalFactory(target='"\n\\'), "outcome", "\x00\u202e"),
        (TallyTotalFactory(target="x" * 150), "bucket", 32_000),
        (TallyTotalFactory(), "attempts", "many"),
        (SchedulerExecutionFactory(), "queue", '"}\n\u202e' * 9),
        (ProcessFactory(info=[1]), "concurrency", "x"),
        (TallyFactory(), "milliseconds", b"\xff"),
    ]
    with lenient():
        for row, column, hostile in rows:
            write(type(row), type(row)._meta.get_field(column), row.pk, hostile)
    found = scrape()
    assert value(found, "pauses") == 0
    assert not any("\n" in text or "\u202e" in text for _name, labels in found for _label, text in labels)
    unreadable = "infinity" if connection.vendor == "postgresql" else "9999-99-99 00:00:00"
    with lenient():
        write(Process, Process._meta.get_field("started_at"), rows[4][0].pk, unreadable)
    found = scrape()
    assert value(found, "pauses") == 0
    assert value(found, "looks_failed") == int(connection.vendor != "mysql"), "MariaDB has no such instant"


def test_a_scrape_has_a_bounded_number_of_queries_and_series(django_assert_max_num_queries: Any) -> None:
    SchedulerExecutionFactory.create_batch(30, scheduler=None)
    for number, row in enumerate(rows := list(SchedulerExecutionFactory._meta.model.objects.all())):
        row.queue = f"q{number:02}"
    SchedulerExecutionFactory._meta.model.objects.bulk_update(rows, ["queue"])
    with django_assert_max_num_queries(75):
        found = scrape()
    queues = {dict(labels).get("queue") for name, labels in found if name.endswith("executions_open")}
    assert len(queues) == 21
    assert value(found, "executions_open", state="queued", queue="other") == 10
    assert TallyTotal.objects.count() == 0


@pytest.mark.parametrize(
    ("token", "addresses", "sent", "address", "status"),
    [
        ("", "", f"Bearer {TOKEN}", "127.0.0.1", 404),
        (TOKEN, "", "", "127.0.0.1", 401),
        (TOKEN, "", f"Bearer {TOKEN}x", "127.0.0.1", 401),
        (TOKEN, "", "Bearer ", "127.0.0.1", 401),
        (TOKEN, "", f"Basic {TOKEN}", "127.0.0.1", 401),
        (TOKEN, "", "Bearer t\xf6ken", "127.0.0.1", 401),
        (TOKEN, "", f"bearer {TOKEN}", "127.0.0.1", 200),
        ("", "10.1.0.0/16,::1", "Bearer ", "10.2.0.1", 403),
        ("", "10.1.0.0/16,::1", "", "::ffff:10.1.9.9", 200),
        ("", "10.1.0.0/16,::1", "", "::1", 200),
        ("", "10.1.0.0/16", "", "", 403),
        (TOKEN, "10.1.0.0/16", "", "10.1.0.1", 200),
        (TOKEN, "10.1.0.0/16", f"Bearer {TOKEN}", "10.2.0.1", 200),
    ],
)
def test_who_may_read(settings: Any, token: str, addresses: str, sent: str, address: str, status: int) -> None:
    settings.CRON_METRICS_TOKEN, settings.CRON_METRICS_ADDRESSES = token, addresses
    headers = {"Authorization": sent, "X-Forwarded-For": "10.1.0.1"}
    response = Client().get("/metrics", headers=headers, REMOTE_ADDR=address)
    assert response.status_code == status
    assert status == 404 or "no-store" in response["Cache-Control"]
    assert ("WWW-Authenticate" in response) == (status == 401)
    assert Client().post("/metrics").status_code == 405


@pytest.mark.parametrize("error", [DatabaseError, InterfaceError])
def test_a_database_that_is_away_is_no_error_of_the_page(error: type[Exception]) -> None:
    def away(*_args: Any) -> Any:
        raise error("server closed the connection: password=hunter2")

    with connection.execute_wrapper(away):
        response = Client(raise_request_exception=False).get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert (response.status_code, response.content) == (503, b"The database cannot be read.\n")


@pytest.mark.parametrize(
    ("name", "bad"),
    [("CRON_METRICS_TOKEN", "short"), ("CRON_METRICS_TOKEN", "ü" * 20), ("CRON_METRICS_ADDRESSES", "x")],
)
def test_settings_that_cannot_be_used(settings: Any, name: str, bad: str) -> None:
    setattr(settings, name, bad)
    (problem,) = problems()
    assert problem.startswith(name)
    assert name != "CRON_METRICS_TOKEN" or bad not in problem
