"""docs/operations/monitoring.md: the recipes do what the page says, read from the page itself."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from scheduling.core.cron import parse, upcoming
from scheduling.operations.tokens import make_token
from tests.factories import (
    FailedExecutionFactory,
    ProcessFactory,
    SchedulerExecutionFactory,
    TallyFactory,
    UserFactory,
)
from tests.operations.recipes import FOLDER, SHOP, blocks, cron_lines
from tests.support import ROOT, Commands

pytestmark = pytest.mark.django_db(transaction=True)

SCRIPT = "monitor-failed-queue.sh"
DAY = datetime(2026, 3, 9, 23, 30, tzinfo=UTC)


class Alerts(HTTPServer):
    """Keeps what is posted to it, and answers with `status`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[dict[str, Any]] = []
        self.status = 200


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Alerts)
        assert self.headers["Content-Type"] == "application/json"
        self.server.received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_args: Any) -> None:
        """Print nothing."""


@contextmanager
def alerts() -> Iterator[Alerts]:
    with Alerts() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join(60)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder like `/srv/shop` of the page: with `manage.py`, an environment, and the script."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "manage.py").symlink_to(ROOT / "manage.py")
    (folder / ".venv").symlink_to(Path(sys.executable).parent.parent)
    (folder / SCRIPT).symlink_to(FOLDER / SCRIPT)
    return folder


def by_cron(line: str, shop: Path, commands: Commands, **environment: str) -> tuple[int, str]:
    """Run the command of a crontab as cron does. Returns its exit code, and what cron would mail."""
    # The settings, which a project has in its file `.env`.
    given = {name: value for name, value in commands.environment.items() if name not in {"PATH", "LANG"}}
    given |= {"PATH": "/usr/bin:/bin", "SHELL": "/bin/sh", **environment}
    done = subprocess.run(
        ["/bin/sh", "-c", line.replace(SHOP, str(shop))],
        cwd="/", env=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def test_the_times_of_the_crontabs() -> None:
    times = [fields for fields, _command in cron_lines()]
    assert times == ["*/5 * * * *", "*/5 * * * *", "0 8 * * 1"]
    instants = upcoming(parse(times[0]), "UTC", DAY, 3)
    assert [instant - DAY for instant in instants] == [timedelta(minutes=minutes) for minutes in (5, 10, 15)]
    (monday,) = upcoming(parse(times[2]), "UTC", DAY, 1)
    assert (monday.isoweekday(), monday.hour) == (1, 8)
    assert not any("%" in command for _fields, command in cron_lines()), "cron would read it as a new line"


@pytest.mark.processes
@pytest.mark.any_database
def test_more_failures_than_the_threshold_are_told(commands: Commands, shop: Path) -> None:
    line = cron_lines()[0][1]
    FailedExecutionFactory.create_batch(10)
    with alerts() as server:
        line = line.replace("https://alerts.example.com/cron", f"http://127.0.0.1:{server.server_port}/cron")
        assert by_cron(line, shop, commands) == (0, "")
        FailedExecutionFactory.create_batch(2)
        said = "12 failed tasks (threshold: 10)"
        assert by_cron(line, shop, commands) == (1, f"ALERT: {said}\n")
        assert server.received == [{"message": said}]
        server.status = 500
        code, output = by_cron(line, shop, commands)
        assert (code, output.splitlines()[0]) == (3, f"ALERT: {said}")
        assert "500" in output
        server.status = 200
        away = "sqlite:////nonexistent/db.sqlite3"
        code, output = by_cron(line, shop, commands, DATABASE_URL=away)
        assert code == 2
        assert "ALERT: the failed tasks cannot be counted\n" in output
        assert server.received[-1] == {"message": "the failed tasks cannot be counted"}


@pytest.mark.processes
@pytest.mark.any_database
def test_what_is_wrong_is_mailed_and_nothing_else(commands: Commands, shop: Path) -> None:
    wrong, week = (command for _fields, command in cron_lines()[1:])
    ProcessFactory(producer=True)
    ProcessFactory()
    assert by_cron(wrong, shop, commands) == (0, "")
    FailedExecutionFactory.create_batch(2, error_class="shop.NoPrice", error_message="no price")
    code, output = by_cron(week, shop, commands)
    assert code == 0
    assert "NoPrice" in output
    SchedulerExecutionFactory(scheduler__rare=True)
    ProcessFactory._meta.model.objects.all().delete()
    code, output = by_cron(wrong, shop, commands)
    assert (code, "FAIL processes" in output) == (0, True), output


def test_the_number_of_failures_by_http(live_server: Any) -> None:
    (request,) = blocks("sh http")
    FailedExecutionFactory.create_batch(2)
    environment = {"PATH": "/usr/bin:/bin", "SITE": live_server.url}
    environment["TOKEN"] = make_token(UserFactory(superuser=True), "x")[1]
    done = subprocess.run(
        ["bash", "-e", "-c", request], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(done.stdout)["failed"] == 2


def test_the_queries_of_the_week() -> None:
    inbox, tallies = blocks("sql")
    before = DAY - timedelta(days=1)
    for finished_at, attempt, base in ((DAY, 4, 0), (DAY, 7, 5), (before, 1, 0), (DAY, 0, 0)):
        FailedExecutionFactory(finished_at=finished_at, attempt=attempt, retry_base=base)
    FailedExecutionFactory(finished_at=DAY, type="report", attempt=3)
    FailedExecutionFactory(finished_at=datetime(2025, 1, 5, 23, tzinfo=UTC))
    SchedulerExecutionFactory(succeeded=True, finished_at=DAY, attempt=4)
    assert table(inbox) == [
        ("2026-03-09", "report", 1, 2.0),
        ("2026-03-09", "worker", 3, pytest.approx((3 + 1 + 0) / 3, abs=0.01)),
        ("2026-03-08", "worker", 1, 0.0),
    ]
    hour = DAY.replace(minute=0)
    TallyFactory(hour=hour, attempts=7)
    TallyFactory(hour=hour - timedelta(hours=5), attempts=3, retries=3, outcome="crashed")
    TallyFactory(hour=before.replace(minute=0), type="report", attempts=4, retries=1, outcome="failed")
    TallyFactory(hour=datetime(2025, 1, 5, 23, tzinfo=UTC))
    assert table(tallies) == [("2026-03-09", "worker", 10, 3, 3, 30.0), ("2026-03-08", "report", 4, 4, 1, 25.0)]


def table(query: str) -> list[tuple[Any, ...]]:
    """The rows of a query of the page. Days are texts, and the other numbers are floats."""
    with connection.cursor() as cursor:
        cursor.execute(query.rstrip(";"))
        return [(str(day), kind, *map(float, numbers)) for day, kind, *numbers in cursor.fetchall()]
