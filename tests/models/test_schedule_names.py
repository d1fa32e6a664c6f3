"""A schedule is named by its description, else by its name, else by its target and its times. So are its alerts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection

from scheduling.alerts.schedules import schedules_by_key
from scheduling.models import Scheduler
from scheduling.models.schedule_names import DEFAULT_MARK
from scheduling.models.scheduler import load_names
from scheduling.models.visibility import EVERYTHING
from scheduling.operations.review_tables import schedule_names
from tests.factories import SchedulerFactory, WorkerFactory

pytestmark = pytest.mark.django_db

UNNAMED = "tests.noop 0 8 * * *"


@pytest.mark.parametrize(
    ("description", "name", "shown"),
    [
        ("Nightly invoices", "night-invoices", "Nightly invoices"),
        ("", "night-invoices", "night-invoices"),
        ("", f"{DEFAULT_MARK}tests.noop", UNNAMED),
        ("", None, UNNAMED),
    ],
)
def test_pages_and_alerts_name_a_schedule_alike(description: str, name: str | None, shown: str) -> None:
    row = SchedulerFactory(description=description, name=name, worker=WorkerFactory(name="tests.noop"))
    assert str(Scheduler.objects.get()) == shown
    assert schedules_by_key([row.pk])[row.pk].name == shown


def test_only_a_schedule_without_a_name_asks_for_its_target() -> None:
    SchedulerFactory(description="", name="night-invoices")
    (row,) = Scheduler.objects.all()
    load_names([row])
    assert "worker" not in row._state.fields_cache


def test_a_name_that_is_no_text_breaks_nothing() -> None:
    if connection.vendor != "sqlite":
        pytest.skip("the server stores texts only")
    row = SchedulerFactory(description="")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduling_scheduler SET name = x'40'")
    found = Scheduler.objects.get()
    assert str(found)
    assert not found.is_worker_default
    assert schedules_by_key([row.pk])[row.pk].name


def test_the_review_names_a_schedule_alike() -> None:
    row = SchedulerFactory(description="", name="night-invoices")
    review: Any = SimpleNamespace(new=[SimpleNamespace(schedule=row.pk)], recovered=[])
    assert schedule_names(review, EVERYTHING) == {row.pk: "night-invoices"}
