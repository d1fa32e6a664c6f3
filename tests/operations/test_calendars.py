"""Schedules name calendars: in the values of clients and files, and from code."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.api import schedule
from scheduling.models import Scheduler
from scheduling.operations.actor import Actor
from scheduling.operations.calendars import find
from scheduling.operations.refused import Code, Refused
from scheduling.operations.schedules import change, make, version
from scheduling.operations.shaping import schedule_shape
from tests.factories import CalendarFactory, GroupFactory, UserFactory, WorkerFactory

pytestmark = pytest.mark.django_db

VALUES = {"schedule": "0 8 * * *", "worker": "tests.noop"}


def problem(actor: Actor, values: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(Refused) as caught:
        make(actor, {**VALUES, **values})
    (found,) = caught.value.problems
    return found.field, str(found.message)


def test_a_client_names_a_calendar() -> None:
    WorkerFactory(name="tests.noop")
    actor, named = Actor(UserFactory(superuser=True), "command"), CalendarFactory(name="Holidays")
    row = make(actor, {**VALUES, "calendar": "Holidays", "on_excluded": "hold"})
    assert (row.calendar, schedule_shape(actor, row.pk).calendar) == (named, "Holidays")
    before = version(row)
    row = change(actor, row.pk, {"calendar": None})
    assert row.calendar is None
    assert version(row) != before
    assert problem(actor, {"calendar": "holidays"}) == ("calendar", "There is no calendar with this name.")
    service = problem(actor, {"calendar": "Holidays", "stay_alive": True})
    assert service[0] == "calendar"


def test_a_user_of_another_group_finds_no_such_calendar() -> None:
    WorkerFactory(name="tests.noop")
    CalendarFactory(name="Theirs", group=GroupFactory())
    may = ["scheduling.add_scheduler", "scheduling.view_scheduler", "scheduling.view_calendar"]
    actor = Actor(UserFactory(permissions=may), "command")
    assert problem(actor, {"calendar": "Theirs"}) == ("calendar", "There is no calendar with this name.")
    with pytest.raises(Refused) as caught:
        find(actor, "Theirs")
    assert caught.value.code == Code.NOT_FOUND


def test_code_names_a_calendar() -> None:
    named = CalendarFactory(name="Holidays")
    schedule("nightly", "0 3 * * *", "tests.noop", calendar="Holidays", on_excluded="hold")
    assert Scheduler.objects.get(name="nightly").calendar == named
    schedule("nightly", "0 3 * * *", "tests.noop", calendar=None)
    assert Scheduler.objects.get(name="nightly").calendar is None
    for wrong in ("holidays", 7):
        with pytest.raises(ValueError, match="There is no calendar"):
            schedule("nightly", "0 3 * * *", "tests.noop", calendar=wrong)  # type: ignore[arg-type]
