"""The tests run `migrate` forwards and backwards, and check the tables and the schedule of the nightly cleanup."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.management import call_command
from django.db import connection

from scheduling.checks import check_schedules
from scheduling.models import Replay, Scheduler
from tests.factories import SchedulerFactory

pytestmark = pytest.mark.django_db(transaction=True)


def migrate(*target: str) -> None:
    """Run `migrate` with its system checks, which `call_command` skips by default."""
    call_command("migrate", *target, verbosity=0, interactive=False, skip_checks=False)


@pytest.fixture
def unmigrated() -> Iterator[None]:
    """Provide a database without the tables of `scheduling`. At the end, make the tables again."""
    migrate("scheduling", "zero")
    yield
    call_command("migrate", verbosity=0, interactive=False, skip_checks=True)


def tables() -> set[str]:
    return set(connection.introspection.table_names())


def test_migrate_makes_the_tables_and_the_nightly_cleanup(unmigrated: None) -> None:
    assert Replay._meta.db_table not in tables()
    migrate()
    row = Scheduler.objects.get(worker__name="run_command")
    assert (row.schedule, row.params, row.status) == ("0 3 * * *", {"command": "cleanup_executions"}, True)
    assert row.plan_state == 1  # a producer's first sweep plans the row
    assert Replay.objects.count() == 0


def test_the_check_of_schedules_does_nothing_without_tables(unmigrated: None) -> None:
    assert check_schedules(["default"]) == []
    migrate()
    SchedulerFactory(worker__name="tests.typed", params={"since_days": 9})
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduling_scheduler SET params = '[]'")
    assert {warning.id for warning in check_schedules(["default"])} == {"scheduling.W002"}


@pytest.mark.parametrize(("active", "expected"), [(True, ["scheduling.W004"]), (False, [])])
def test_a_check_names_the_active_schedules_without_a_handler(active: bool, expected: list[str]) -> None:
    row = SchedulerFactory(worker__name="tests.only_new_code_knows", status=active)
    found = check_schedules(["default"])
    assert [warning.id for warning in found] == expected
    if active:
        assert f"Schedule {row.pk}" in found[0].msg
        assert "tests.only_new_code_knows" in found[0].msg


@pytest.mark.long
def test_migrations_can_be_undone_and_applied_again(unmigrated: None) -> None:
    migrate()
    migrate("scheduling", "zero")
    migrate("cron_reports", "zero")
    migrate()
    assert Scheduler.objects.filter(worker__name="run_command").exists()
