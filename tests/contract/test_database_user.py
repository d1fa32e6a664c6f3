"""The processes and commands work with a database user who may only read and write rows."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import DatabaseError, connection
from django.utils import timezone as clock

from scheduling.models import SchedulerExecution
from tests.execution.retention import make_executions
from tests.factories import SchedulerFactory, due
from tests.support import Commands, database_url, wait_for

pytestmark = [
    pytest.mark.processes,
    pytest.mark.database,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no users"),
]

RIGHTS = "SELECT, INSERT, UPDATE, DELETE"
"""What docs/security.md says that the user needs."""

COMMANDS = ["health", "doctor", "cron status", "cron upcoming", "cron failed", "evaluate_alerts", "cleanup_executions"]


@pytest.fixture
def user() -> Iterator[str]:
    """Provide the name, which is also the password, of a user with these rights on the test database alone."""
    name = f"least_{uuid.uuid4().hex[:8]}"
    create, *grants = _made(name, connection.ops.quote_name(str(connection.settings_dict["NAME"])))
    with connection.cursor() as cursor:
        try:
            cursor.execute(create)
        except DatabaseError as error:
            if not re.search("denied|privilege", str(error)):
                raise
            pytest.skip(f"this user of the database may make no other one: {error}")
        try:
            for statement in grants:
                cursor.execute(statement)
            yield name
        finally:
            for statement in _dropped(name):
                cursor.execute(statement)


def _made(name: str, database: str) -> list[str]:
    if connection.vendor == "postgresql":
        return [
            f"CREATE ROLE {name} LOGIN PASSWORD '{name}'",
            f"GRANT USAGE ON SCHEMA public TO {name}",
            f"GRANT {RIGHTS} ON ALL TABLES IN SCHEMA public TO {name}",
        ]
    return [f"CREATE USER {name}@'%' IDENTIFIED BY '{name}'", f"GRANT {RIGHTS} ON {database}.* TO {name}@'%'"]


def _dropped(name: str) -> list[str]:
    if connection.vendor == "postgresql":
        return [
            f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {name}",
            f"REVOKE ALL ON SCHEMA public FROM {name}",
            f"DROP ROLE {name}",
        ]
    return [f"DROP USER {name}@'%'"]


def test_runs_retries_and_the_cleanup_need_no_other_right(commands: Commands, user: str) -> None:
    (old,) = make_executions("succeeded")
    url = re.sub(r"//.*@", f"//{user}:{user}@", database_url())
    commands.environment["DATABASE_URL"] = url
    fleet = [commands.start(name) for name in ("run_scheduler", "run_worker")]
    commands.ready(*fleet)
    for target in ["tests.await_failing", *["tests.noop"] * 300]:  # so many that they are claimed in a table of values
        due(SchedulerFactory(worker__name=target), clock.now().replace(second=0, microsecond=0) - timedelta(minutes=1))
    for state in ("succeeded", "failed"):
        wait_for(lambda state=state: SchedulerExecution.objects.filter(state=state).exists(), state)
    said = {command: commands.run(*command.split()) for command in COMMANDS}
    assert not SchedulerExecution.objects.filter(pk=old.pk).exists(), said["cleanup_executions"]
    for text in [*(commands.log(process) for process in fleet), *(text for _code, text in said.values())]:
        assert not re.search("denied|permission", text, re.IGNORECASE), text
    assert [commands.stop(process) for process in fleet] == [0, 0]
