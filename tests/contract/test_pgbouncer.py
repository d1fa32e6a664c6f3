"""Everything works through pgbouncer in transaction mode, where each transaction may get another session."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone as clock

from scheduling.models import SchedulerExecution
from scheduling.models.parts import rows_in_parts
from scheduling.processes.idle_transactions import is_pooled, limit_idle_transactions
from tests.admin.addresses import every_address
from tests.admin.rows import one_of_each
from tests.contract.pooler import Pooler, pooler
from tests.factories import ManualExecutionFactory, SchedulerFactory, due
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def bouncer(free_port: int) -> Iterator[Pooler]:
    with tempfile.TemporaryDirectory(prefix="pgbouncer-") as name, pooler(Path(name), free_port) as started:
        yield started


@pytest.fixture
def through(bouncer: Pooler) -> Iterator[Pooler]:
    """Let the connection of the test go through pgbouncer."""
    config = connection.settings_dict
    former = dict(config)
    connection.close()
    config.update(HOST="127.0.0.1", PORT=str(bouncer.port), DISABLE_SERVER_SIDE_CURSORS=True)
    yield bouncer
    connection.close()
    config.update(former)


@pytest.fixture
def pooled(bouncer: Pooler, commands: Commands) -> Commands:
    commands.environment |= {"DATABASE_URL": bouncer.url(), "DISABLE_SERVER_SIDE_CURSORS": "true"}
    return commands


def test_commands(pooled: Commands) -> None:
    for _row in range(3):
        SchedulerFactory()
    processes = [pooled.start("run_scheduler"), pooled.start("run_worker")]
    pooled.ready(*processes)
    for arguments in (
        ["health", "--kind", "producer"],
        ["health", "--kind", "consumer"],
        ["migrate"],
        ["check", "--database", "default"],
        ["cleanup_executions"],
    ):
        code, text = pooled.run(*arguments)
        assert code == 0, text
    code, text = pooled.run("doctor", "--format", "json")
    assert code == 0, text
    findings = {finding["check"]: finding["level"] for finding in json.loads(text)["findings"]}
    assert findings["pooler"] == "ok"
    assert set(findings.values()) <= {"ok", "warn"}
    code, text = pooled.run("check", "--database", "default", DISABLE_SERVER_SIDE_CURSORS="false")
    assert code == 0, text


def have_succeeded(count: int) -> bool:
    return SchedulerExecution.objects.filter(state="succeeded").count() == count


def test_runs_go_on_when_pgbouncer_is_restarted(pooled: Commands, bouncer: Pooler) -> None:
    processes = [pooled.start("run_scheduler"), *(pooled.start("run_worker", "--concurrency", "2") for _ in range(2))]
    pooled.ready(*processes)
    for round_ in range(2):
        due(SchedulerFactory(rare=True), clock.now())
        ManualExecutionFactory.bulk(40)
        # The producer may claim its occurrence after all others have succeeded.
        wait_for(partial(have_succeeded, 41 * (round_ + 1)), "all have succeeded")
        if round_ == 0:
            bouncer.stop()
            bouncer.start()
    assert not SchedulerExecution.objects.exclude(attempt=1).exists()
    assert SchedulerExecution.objects.count() == 82
    assert [process.poll() for process in processes] == [None] * 3


def test_every_page(through: Pooler, tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path
    rows = one_of_each()
    user = User.objects.create_superuser("root", password="x")
    client = Client()
    client.force_login(user)
    assert is_pooled(connection)
    addresses = every_address(rows)
    assert len(addresses) > 50
    for address in addresses:
        if "logout" not in address.path:
            response = client.get(address.path)
            assert response.status_code < 500, address
            response.close()  # an artefact is an open file


def test_no_limit_stays_in_a_session_of_others(through: Pooler) -> None:
    limit_idle_transactions(7)
    with connection.cursor() as cursor:
        for _session in range(8):
            cursor.execute("SHOW idle_in_transaction_session_timeout")
            assert cursor.fetchone()[0] == "0"


def test_many_rows_are_read_without_a_cursor(through: Pooler) -> None:
    connection.settings_dict["DISABLE_SERVER_SIDE_CURSORS"] = False
    keys = [row.pk for row in ManualExecutionFactory.bulk(25)]
    assert [row.pk for row in rows_in_parts(SchedulerExecution.objects.all(), size=10)] == keys
