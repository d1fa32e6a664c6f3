"""`migrate` takes a database of an earlier version, with rows in it, to the present one, and back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.management import call_command
from django.db import connection

from scheduling.checks import check_params
from scheduling.models import Replay, Scheduler
from tests.factories import SchedulerFactory

pytestmark = pytest.mark.django_db(transaction=True)


def migrate(*target: str) -> None:
    """As from a shell: `call_command` alone would leave out the checks."""
    call_command("migrate", *target, verbosity=0, interactive=False, skip_checks=False)


@pytest.fixture
def earlier() -> Iterator[None]:
    """The tables of the first version that had a dashboard, with an active schedule."""
    SchedulerFactory(description="kept", schedule="*/5 * * * *", worker__name="tests.typed", params={"since_days": 9})
    migrate("scheduling", "0003")
    yield
    call_command("migrate", verbosity=0, interactive=False, skip_checks=True)


def tables() -> set[str]:
    return set(connection.introspection.table_names())


def test_a_database_of_an_earlier_version_is_brought_up_to_date(earlier: None) -> None:
    assert Replay._meta.db_table not in tables()
    migrate()
    row = Scheduler.objects.get(description="kept")
    assert (row.schedule, row.params, row.status, row.pause_reason) == ("*/5 * * * *", {"since_days": 9}, True, "")
    assert row.plan_stale == 0
    assert Replay.objects.count() == 0


def test_the_check_of_parameters_waits_for_the_tables(earlier: None) -> None:
    spoil = "UPDATE scheduling_scheduler SET params = '[]'"
    with connection.cursor() as cursor:
        cursor.execute(spoil)
    assert check_params(["default"]) == []
    migrate()
    assert [each.id for each in check_params(["default"])] == ["scheduling.W002"]


def test_a_database_is_taken_back_and_forth(earlier: None) -> None:
    migrate()
    migrate("scheduling", "0003")
    migrate()
    assert Scheduler.objects.filter(description="kept").exists()
