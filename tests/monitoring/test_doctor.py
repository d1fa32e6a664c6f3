"""`doctor` finds each kind of problem and describes it. The exit code is 1 if there is a failure."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone as clock

from scheduling.broker import BrokerNode, BrokerUnavailable, Counts, QueueUnavailable, TopologyMismatch
from scheduling.broker.database import DatabaseBroker
from scheduling.core.clock_skew import skew
from scheduling.models import Scheduler
from scheduling.models.time_words import format_span
from scheduling.monitoring.doctor import broker as broker_area
from scheduling.monitoring.doctor import environment, sqlite
from scheduling.monitoring.doctor.database import judge_clock
from scheduling.monitoring.findings.finding import Level
from tests.contract.server import Server, require
from tests.factories import (
    AttemptFactory,
    ProcessFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    WorkerFactory,
)
from tests.support import Commands

AREAS = ("settings", "database", "broker", "deployment", "schedules", "processes", "runs", "inbox")


def doctor(*arguments: str) -> tuple[int, dict[str, list[dict[str, str]]]]:
    """Run the command. Return its exit code, and its findings grouped by check."""
    code, text = doctor_text("--format=json", *arguments)
    found: dict[str, list[dict[str, str]]] = {}
    for finding in json.loads(text)["findings"]:
        found.setdefault(finding["check"], []).append(finding)
    return code, found


def doctor_text(*arguments: str) -> tuple[int, str]:
    """Run the command and return its exit code and its output."""
    out = io.StringIO()
    try:
        call_command("doctor", *arguments, stdout=out)
    except SystemExit as end:
        return int(end.code or 0), out.getvalue()
    return 0, out.getvalue()


@pytest.fixture
def alive_processes(db: None) -> None:
    """Make a producer and a consumer that are alive."""
    ProcessFactory(producer=True)
    ProcessFactory()


@pytest.mark.usefixtures("alive_processes")
def test_an_installation_without_problems() -> None:
    SchedulerFactory()
    code, text = doctor_text("--format=json", "--strict")
    report = json.loads(text)
    assert code == 0, text
    assert report["level"] == "ok"
    assert tuple(dict.fromkeys(finding["area"] for finding in report["findings"])) == AREAS
    assert all(finding["seen"] for finding in report["findings"])


@pytest.mark.usefixtures("alive_processes")
def test_the_output_as_text() -> None:
    SchedulerExecutionFactory(wake_at=clock.now() - timedelta(minutes=20))
    code, text = doctor_text("--no-color")
    assert code == 0
    lines = text.splitlines()
    assert "Database" in lines
    assert re.search(
        r"^  WARN  queued +Runs waiting in the queue “main”: 1, the oldest for 20 min\.\n +-> Start more", text, re.M
    )
    assert re.fullmatch(r"\d+ fine, 1 warning, 0 failures\.", lines[-1])


@pytest.mark.usefixtures("alive_processes")
def test_strict_makes_a_warning_a_failure() -> None:
    ProcessFactory(silent=True)
    assert doctor()[0] == 0
    code, found = doctor("--strict")
    assert code == 1
    assert found["silent"][0]["level"] == "warn"


@pytest.mark.django_db
def test_chosen_areas_work_before_the_first_start() -> None:
    code, found = doctor("--only", "settings", "database", "broker")
    assert code == 0
    assert {"settings", "version", "migrations", "transport"} <= set(found)
    assert "producers" not in found


def missing_code() -> None:
    SchedulerFactory(worker=WorkerFactory(name="not.registered.here"))


def missing_code_unused() -> None:
    SchedulerFactory(worker=WorkerFactory(name="not.registered.here"), off=True)


def broken_plan() -> None:
    row = SchedulerFactory()
    Scheduler.objects.filter(pk=row.pk).update(next_run_at=None, plan_error="Minute: 99 is above 59.")


def without_next_run() -> None:
    row = SchedulerFactory()
    Scheduler.objects.filter(pk=row.pk).update(next_run_at=None)


def overdue(minutes: int) -> Callable[[], None]:
    def make() -> None:
        row = SchedulerFactory()
        Scheduler.objects.filter(pk=row.pk).update(next_run_at=clock.now() - timedelta(minutes=minutes))

    return make


def failing() -> None:
    row = SchedulerFactory()
    for _ in range(3):
        SchedulerExecutionFactory(scheduler=row, failed=True)


def standalone_wanted() -> None:
    SchedulerFactory(stay_alive=True)


def silent() -> None:
    ProcessFactory(silent=True)


def unconfirmed() -> None:
    SchedulerExecutionFactory(claimed=True, wake_at=clock.now() - timedelta(minutes=3))


def lost_lease() -> None:
    SchedulerExecutionFactory(running=True, wake_at=clock.now() - timedelta(minutes=3))


@pytest.mark.usefixtures("alive_processes")
@pytest.mark.parametrize(
    ("make", "check", "level", "words"),
    [
        (missing_code, "code", "fail", r"not registered here: 1\. Schedule \d+ \(worker not\.registered\.here\)\."),
        (missing_code_unused, "unused", "warn", r"used by no active schedule: worker not\.registered\.here"),
        (
            broken_plan,
            "plans",
            "fail",
            r"will not run until they are fixed: 1\. Schedule \d+ \(Minute: 99 is above 59\.\)",
        ),
        (without_next_run, "next run", "warn", r"without a next run: 1\. Schedule \d+ \(.+\)\."),
        (
            overdue(2),
            "late",
            "warn",
            r"that no producer has claimed: 1, the oldest for 2 min\. Schedule \d+ \(2 min\)\.",
        ),
        (overdue(10), "late", "fail", r"the oldest for 10 min"),
        (
            standalone_wanted,
            "standalone",
            "fail",
            r"standalone consumer is alive\. Services that do not run: 1\.",
        ),
        (failing, "failing", "warn", r"failed 3 or more times in a row: 1\. Schedule \d+ \(3 in a row\)\."),
        (silent, "silent", "warn", r"that lost contact: 1\. consumer host-\S+ \(last heartbeat 10 min ago\)\."),
        (unconfirmed, "claimed", "warn", r"Runs claimed and not confirmed by the broker: 1\."),
        (lost_lease, "leases", "fail", r"Runs whose process is gone, not recovered yet: 1\."),
    ],
)
def test_each_problem_is_found(make: Callable[[], None], check: str, level: str, words: str) -> None:
    make()
    code, found = doctor()
    (finding,) = found[check]
    assert finding["level"] == level
    assert re.search(words, finding["seen"]), finding["seen"]
    assert finding["advice"]
    assert code == (1 if level == "fail" else 0)


@pytest.mark.django_db
def test_no_process_is_alive() -> None:
    ProcessFactory(producer=True, stopped=True)
    ProcessFactory(silent=True)
    code, found = doctor()
    assert code == 1
    assert found["producers"][0]["advice"] == "Start: manage.py run_scheduler"
    assert found["consumers"][0]["advice"] == "Start: manage.py run_worker"


@pytest.mark.django_db
def test_a_standalone_consumer_does_not_serve_the_main_queue() -> None:
    ProcessFactory(info={"queue": "standalone"})
    _, found = doctor()
    assert found["consumers"][0]["level"] == "fail"
    assert found["standalone"][0]["level"] == "ok"


@pytest.mark.django_db
def test_a_consumer_with_a_long_lease_stays_alive_longer(settings: Any) -> None:
    settings.CRON_LEASE_SECONDS = "1200"
    ProcessFactory(heartbeat_at=clock.now() - timedelta(seconds=30))
    assert doctor()[1]["consumers"][0]["level"] == "ok"


@pytest.mark.django_db
def test_unusable_settings_are_a_finding(settings: Any) -> None:
    settings.CRON_MAX_RETRIES = "99"
    code, found = doctor()
    assert code == 1
    assert found["settings"][0]["seen"].startswith("CRON_MAX_RETRIES is 99")
    assert [finding["area"] for finding in found["skipped"]] == [
        "broker",
        "deployment",
        "alerts",
        "heartbeat",
        "schedules",
        "processes",
        "queues",
        "pauses",
        "breakers",
        "runs",
        "inbox",
        "pings",
        "calendars",
        "zones",
        "rows",
    ]


# --- broker -------------------------------------------------------------------------------------


class Remote(DatabaseBroker):
    """A transport outside the database. It replaces only the methods that `doctor` calls."""

    embedded = False

    def __init__(
        self,
        refuses: Exception | None = None,
        ready: int = 0,
        product: str = "",
        counts: Counts | None = None,
        nodes: Sequence[BrokerNode] = (),
        left: dict[str, int] | None = None,
    ) -> None:
        self.refuses, self.product, self.left = refuses, product, left or {}
        self.counted = counts or Counts({"main": ready, "standalone": 0}, 2)
        self.seen = list(nodes)
        self.addresses = ["amqp://cron@broker:5672", *self.seen[1:]]
        self.closed = False

    def declare(self, delays_ms: object) -> None:
        if self.refuses is not None:
            raise self.refuses

    def counts(self, queues: Iterable[str] = ()) -> Counts:
        return self.counted

    def nodes(self) -> list[BrokerNode]:
        return self.seen

    def left_behind(self) -> dict[str, int]:
        return self.left

    def close(self) -> None:
        self.closed = True


NODE = BrokerNode("amqp://a", "RabbitMQ 4.0.5", "blue")
SILENT = BrokerNode("amqp://b", problem="It is silent")
OTHER = BrokerNode("amqp://c", "RabbitMQ 4.0.5", "red")


@pytest.mark.usefixtures("alive_processes")
@pytest.mark.parametrize(
    ("remote", "check", "level", "words"),
    [
        (Remote(TopologyMismatch("The queue 'q' exists with x-message-ttl = 5")), "queues", "fail", "exists with"),
        (Remote(BrokerUnavailable("Nothing listens at amqp://cron@broker:5672.")), "reachable", "fail", "listens"),
        (Remote(QueueUnavailable("The queue 'q' cannot be used.")), "queues", "fail", "cannot be used"),
        (Remote(counts=Counts({}, 2, problems={"q": "The node is down."})), "queue", "fail", "node is down"),
        (
            Remote(counts=Counts({"main": 0}, 2, {"main": 3})),
            "strangers",
            "warn",
            "3 consumers, and this database knows",
        ),
        (Remote(left={"cron_scheduler": 3}), "former type", "warn", "cron_scheduler holds 3 messages"),
        (Remote(nodes=[NODE, SILENT, SILENT]), "addresses", "warn", "2 of 3 addresses cannot be used: It is silent."),
        (Remote(nodes=[NODE, NODE, SILENT]), "addresses", "warn", "1 of 3 addresses"),
        (Remote(nodes=[NODE, OTHER]), "addresses", "fail", "different clusters: amqp://a is 'blue'; amqp://c is 'red'"),
        (Remote(nodes=[NODE, NODE]), "addresses", "ok", "All 2 addresses answer"),
        (Remote(product="RabbitMQ 3.9.27"), "version", "fail", "RabbitMQ 3.9.27 is too old"),
        (Remote(product="RabbitMQ 4.1.0"), "version", "ok", "RabbitMQ 4.1.0."),
        (Remote(product="HareQueue 2.0"), "version", "warn", "HareQueue 2.0."),
        (Remote(ready=3), "failed", "ok", "2 messages parked, 0 rows"),
        (Remote(ready=3), "depths", "ok", "main: 3 messages, 3 queued rows"),
        (Remote(ready=1), "depths", "ok", "main: 1 message, 3 queued rows"),  # a consumer holds the other two messages
        (Remote(ready=0), "depths", "warn", "main: 0 messages, 3 queued rows"),
    ],
)
def test_findings_about_the_broker(
    remote: Remote, check: str, level: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_area, "get_broker", lambda _url: remote)
    for _ in range(3):
        SchedulerExecutionFactory()
    code, found = doctor("--only", "broker")
    finding = found[check][0]
    assert (finding["level"], code) == (level, 1 if level == "fail" else 0)
    assert words in finding["seen"]
    assert remote.closed


@pytest.mark.usefixtures("alive_processes")
def test_several_addresses_and_classic_queues_are_a_finding(settings: Any) -> None:
    assert "one node" not in doctor("--only", "processes")[1]
    settings.BROKER_URL = "amqp://cron:sesame@a,b,c/"
    (finding,) = doctor("--only", "processes")[1]["one node"]
    assert finding["level"] == "warn"
    assert "BROKER_URL names 3 addresses" in finding["seen"]
    assert "CRON_QUEUE_TYPE=quorum" in finding["advice"]
    settings.CRON_QUEUE_TYPE = "quorum"
    assert "one node" not in doctor("--only", "processes")[1]


@pytest.mark.django_db
def test_three_addresses_of_which_none_answers(settings: Any) -> None:
    settings.BROKER_URL = "amqp://cron:sesame@127.0.0.1:1,127.0.0.1:2,127.0.0.1:3/"
    code, text = doctor_text("--only", "broker")
    assert code == 1
    assert "3 of 3 addresses cannot be used" in text
    assert "Nothing listens at amqp://cron@127.0.0.1:2." in text
    assert "sesame" not in text


@pytest.mark.usefixtures("alive_processes")
@pytest.mark.rabbitmq
def test_a_real_broker_and_a_queue_with_other_arguments(settings: Any) -> None:
    require()
    with closing(Server()) as server:
        settings.BROKER_URL = server.url()
        code, found = doctor("--only", "broker")
        assert code == 0
        assert re.fullmatch(r"RabbitMQ \d+\.\d+\.\d+.*\.", found["version"][0]["seen"])
        assert [finding["seen"] for finding in found["depths"]][1] == "main: 0 messages, 0 queued rows."
        failed = server.topology.failed
        server.delete(failed)
        server.channel.queue_declare(failed, durable=True, arguments={"x-max-length": 5})
        code, found = doctor("--only", "broker")
        assert code == 1
        assert f"The queue '{failed}' exists with x-max-length = '5'" in found["queues"][0]["seen"]


@pytest.mark.usefixtures("alive_processes")
def test_runs_longer_than_the_brokers_limit_are_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_area, "get_broker", lambda _url: Remote())
    assert "long runs" not in doctor("--only", "broker")[1]
    AttemptFactory(started_at=clock.now() - timedelta(hours=3), finished_at=clock.now())
    assert "consumer_timeout" in doctor("--only", "broker")[1]["long runs"][0]["seen"]


@pytest.mark.django_db
def test_a_broker_that_does_not_answer(settings: Any) -> None:
    settings.BROKER_URL = "amqp://cron:sesame@127.0.0.1:1/"
    code, text = doctor_text("--only", "broker")
    assert code == 1
    assert "127.0.0.1:1" in text
    assert "sesame" not in text


@pytest.mark.django_db
def test_an_invalid_broker_url(settings: Any) -> None:
    settings.BROKER_URL = "amqp://cron:sesame#@broker:port/"
    code, text = doctor_text("--only", "broker")
    assert code == 1
    assert "BROKER_URL" in text
    assert "sesame" not in text


# --- database -----------------------------------------------------------------------------------


@pytest.mark.processes
def test_a_missing_database_file(commands: Commands, tmp_path: Path) -> None:
    absent = tmp_path / "absent.sqlite3"
    code, text = commands.run("doctor", DATABASE_URL=f"sqlite:///{absent}")
    assert code == 1
    assert f"There is no database file {absent}." in text
    assert "Run: manage.py migrate" in text
    assert "WARN  skipped" in text
    assert not absent.exists()


@pytest.mark.processes
def test_a_database_server_that_does_not_answer(commands: Commands) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has no server")
    scheme = {"mysql": "mysql", "postgresql": "postgres"}[connection.vendor]
    code, text = commands.run("doctor", DATABASE_URL=f"{scheme}://cron:sesame@127.0.0.1:1/cron")
    assert code == 1
    assert "127.0.0.1:1/cron does not answer" in text
    assert "sesame" not in text


@pytest.mark.processes
def test_a_database_without_tables(commands: Commands, tmp_path: Path) -> None:
    empty = tmp_path / "empty.sqlite3"
    empty.touch()
    code, text = commands.run("doctor", DATABASE_URL=f"sqlite:///{empty}")
    assert code == 1
    assert re.search(r"FAIL  migrations +\d+ migrations not applied: contenttypes\.0001_initial", text)


@pytest.mark.parametrize(
    ("theirs", "level"),
    [(1000.0, Level.OK), (1000.9, Level.OK), (1002.0, Level.WARN), (997.0, Level.WARN), (1006.0, Level.FAIL)],
)
def test_clock_of_the_database_server(theirs: float, level: Level) -> None:
    assert judge_clock(skew(1000.0, theirs, 1000.0)).level is level


def test_a_slow_answer_does_not_look_like_a_wrong_clock() -> None:
    assert judge_clock(skew(1000.0, 1004.0, 1004.5)).level is Level.OK


def test_file_systems(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"/dev/a / ext4 rw 0 0\nhost:/x {tmp_path}/share nfs4 rw 0 0\nhost:/y {tmp_path}/with\\040space cifs rw 0 0\n"
        f"/dev/b {tmp_path}/share/disk xfs rw 0 0\n"
    )
    kinds = {
        place: sqlite.file_system(tmp_path / place, mounts)
        for place in ("db", "share/db", "with space/db", "share/disk/db", "sharedb")
    }
    assert list(kinds.values()) == ["ext4", "nfs4", "cifs", "xfs", "ext4"]
    assert sqlite.file_system(tmp_path, tmp_path / "absent") == ""
    odd = f"/dev/sdb1 /media/caf\xe9 vfat rw\n/dev/sdc1 /media/a\x85b vfat rw\nserver:/x {tmp_path} nfs4 rw\n"
    mounts.write_bytes(odd.encode("latin-1"))
    assert sqlite.file_system(tmp_path / "db.sqlite3", mounts) == "nfs4"


# --- time zones ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "level"),
    [
        (("the tzdata package", "2026.6"), Level.OK),
        (("/usr/share/zoneinfo", "2025b"), Level.OK),
        (("/usr/share/zoneinfo", "2023c"), Level.WARN),
        (("/usr/share/zoneinfo", ""), Level.WARN),
        (("", ""), Level.FAIL),
    ],
)
def test_time_zone_data(data: tuple[str, str], level: Level, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "zone_data", lambda: data)
    (finding,) = environment.zones(datetime(2026, 11, 21, tzinfo=UTC))
    assert finding.level is level


def test_system_zones_win_over_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment.zoneinfo, "TZPATH", (str(tmp_path),))
    assert environment.zone_data()[0] == "the tzdata package"
    (tmp_path / "Europe").mkdir()
    (tmp_path / "tzdata.zi").write_text("# version 2024a\n# ...\n")
    assert environment.zone_data() == (str(tmp_path), "2024a")


def test_spans() -> None:
    spans = [format_span(seconds) for seconds in (3, 90, 600, 7_230, 306_000, 1_000_000)]
    assert spans == ["3 s", "1 min 30 s", "10 min", "2 h", "3 d 13 h", "11 d"]
