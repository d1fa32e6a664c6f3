"""Tests of the admin site of this project: its first page is the dashboard, and its sidebar is ordered by use."""

from __future__ import annotations

import re

import pytest
from django.contrib import admin
from django.test import Client, RequestFactory

from scheduling import admin_site
from scheduling.admin_site import CronAdminSite
from tests.admin.conftest import logged_in
from tests.factories import SchedulerExecutionFactory, UserFactory

DASHBOARD = "/admin/scheduling/dashboard/"

pytestmark = pytest.mark.django_db


def sidebar(client: Client, path: str) -> list[tuple[str, list[str]]]:
    """Return the sections of the sidebar: the name of each section and the names of its models."""
    found = client.get(path).context["available_apps"]
    return [(str(app["name"]), [str(model["name"]) for model in app["models"]]) for app in found]


def test_the_first_page_is_the_dashboard(editor: Client) -> None:
    assert editor.get("/", follow=True).redirect_chain[-1] == (DASHBOARD, 302)


def test_a_user_without_the_dashboard_gets_the_list_of_pages() -> None:
    client = logged_in(UserFactory(permissions=["scheduling.view_scheduler"]))
    response = client.get("/admin/")
    assert response.status_code == 200
    assert "/admin/scheduling/scheduler/" in response.content.decode()


def test_the_sidebar_is_ordered_by_use_and_counts_failures() -> None:
    SchedulerExecutionFactory.create_batch(2, failed=True)
    client = logged_in(UserFactory(superuser=True))
    (name, models), *others = sidebar(client, DASHBOARD)
    assert name == "Cron"
    assert models[:5] == ["Dashboard", "Failed inbox (2)", "Alerts", "Executions", "Schedules"]
    assert models[5:9] == ["Review", "Workers", "Reports", "Reminders"]
    assert [section for section, _models in others][-1] == "Authentication and Authorization"
    assert all(model not in models for _section, listed in others for model in listed)


def test_an_empty_inbox_has_no_number(editor: Client) -> None:
    assert "Failed inbox" in sidebar(editor, DASHBOARD)[0][1]


def test_the_number_of_failures_stops_at_a_limit(editor: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_site, "COUNTED", 1)
    SchedulerExecutionFactory.create_batch(2, failed=True)
    assert "Failed inbox (1+)" in sidebar(editor, DASHBOARD)[0][1]


def test_a_user_who_may_not_see_the_inbox_sees_no_number() -> None:
    SchedulerExecutionFactory(failed=True)
    client = logged_in(UserFactory(permissions=["scheduling.view_scheduler"]))
    assert "Failed inbox" not in client.get("/admin/scheduling/scheduler/").content.decode()


def test_pages_have_the_title_of_the_site_and_the_site_has_an_icon(editor: Client) -> None:
    page = editor.get(DASHBOARD).content.decode()
    assert re.search(r"<title>[^<]*Dashboard[^<]*Cron</title>", page)
    assert "Django" not in re.sub(r"<!--.*?-->", "", page)
    icon = editor.get("/favicon.ico", follow=True)
    assert (icon.status_code, icon["Content-Type"]) == (200, "image/x-icon")


def test_a_page_of_one_app_keeps_the_order_of_django() -> None:
    site = admin.site
    assert isinstance(site._wrapped, CronAdminSite)  # type: ignore[attr-defined]
    request = RequestFactory().get("/admin/auth/")
    request.user = UserFactory(superuser=True)
    (app,) = site.get_app_list(request, "auth")
    assert [model["object_name"] for model in app["models"]] == ["Group", "User"]
