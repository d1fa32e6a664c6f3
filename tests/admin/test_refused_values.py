"""A value that the database cannot use is refused with 400. It is no server error, and it changes no row."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import InterfaceError, connection
from django.test import Client
from django.urls import reverse

from reports.models import Report
from scheduling.admin.common.refused_values import is_refused_value
from scheduling.models import Scheduler
from tests.admin.world import world
from tests.factories import FailedExecutionFactory, GroupFactory, ReportFactory, SchedulerFactory

MIDDLEWARE = "scheduling.admin.common.refused_values.RefusedValues"
LISTS = {
    "auth_group": (GroupFactory, "delete_selected"),
    "cron_reports_report": (ReportFactory, "delete_selected"),
    "scheduling_failedexecution": (FailedExecutionFactory, "discard_selected"),
    "scheduling_scheduler": (SchedulerFactory, "run_selected"),
}


SITES = ("our site", "another site")
ACTIONS = [(site, name) for name in LISTS for site in SITES if site == "our site" or not name.startswith("auth")]
"""The pages of Django's own apps need the middleware."""


@pytest.fixture(params=SITES)
def project(request: pytest.FixtureRequest, settings: Any) -> str:
    """Our own site has the middleware. Another site does not need the middleware for our pages."""
    if request.param == "another site":
        settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if name != MIDDLEWARE]
    return str(request.param)


@pytest.mark.parametrize("key", ["abc", "1.5", "", "\x00", "[]", "9" * 5_000])
@pytest.mark.parametrize(("project", "name"), ACTIONS, indirect=["project"])
def test_an_action_with_an_invalid_key_is_refused(project: str, editor: Client, name: str, key: str) -> None:
    factory, action = LISTS[name]
    data = {"action": action, "_selected_action": [factory().pk, key], "post": "yes"}
    before = world()
    answer = editor.post(reverse(f"admin:{name}_changelist"), data)
    assert answer.status_code == 400
    assert "Nothing was changed" in answer.content.decode()
    assert world() == before


def test_a_date_before_the_first_year_is_refused(project: str, editor: Client) -> None:
    path = reverse("admin:scheduling_replay_changelist")
    status = editor.get(path, {"finished_at": "0001-01-01T00:00:00+14:00"}).status_code
    assert status == 200 if connection.vendor == "postgresql" else status == 400


@pytest.mark.parametrize("value", ["x" * 50_001, "a b " * 600])
def test_a_long_search_in_the_lists_of_users_and_groups_is_no_server_error(editor: Client, value: str) -> None:
    GroupFactory()  # the database evaluates the search only if there is a row
    for name in ("auth_user", "auth_group"):
        answer = editor.get(reverse(f"admin:{name}_changelist"), {"q": value})
        assert answer.status_code == (400 if connection.vendor == "sqlite" else 200)


@pytest.mark.parametrize("value", ["a,b,c", " "])
def test_a_range_without_two_ends_is_refused(project: str, editor: Client, value: str) -> None:
    ReportFactory()
    path = reverse("admin:cron_reports_report_changelist")
    assert editor.get(path, {"description__range": value}).status_code == 400


def test_an_invalid_regular_expression_is_refused(editor: Client) -> None:
    assert editor.get(reverse("admin:auth_user_changelist"), {"username__regex": "((("}).status_code == 400


def test_a_permission_with_a_key_that_is_too_large_is_no_server_error(editor: Client) -> None:
    data = {"name": "another", "permissions": ["9" * 400]}
    assert editor.post(reverse("admin:auth_group_add"), data).status_code in (200, 400)
    assert not Group.objects.filter(name="another").exists()


def test_an_error_of_our_code_or_of_an_absent_database_is_still_a_server_error(db: None) -> None:
    def raised(wrong: Any) -> Exception:
        try:
            wrong()
        except Exception as error:
            return error
        raise AssertionError("nothing was raised")

    assert not is_refused_value(raised(lambda: int("x")))
    assert not is_refused_value(raised(lambda: Report(title=[].pop())))
    assert not is_refused_value(InterfaceError("connection already closed"))
    assert is_refused_value(raised(lambda: Scheduler.objects.filter(pk="x")))
