"""Tests of the pages that our ModelAdmins add to Django's admin: their URLs, and the checks that come before a view."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path, reverse

from scheduling.admin.common.pages import READ, Page, Pages
from scheduling.admin.schedulers.admin import SchedulerAdmin
from scheduling.admin.ui.links import execution_url, list_url
from scheduling.models import Scheduler
from tests.admin.conftest import VIEW, logged_in
from tests.factories import SchedulerExecutionFactory, SchedulerFactory, UserFactory

OBJECT_PAGES = [
    ("scheduler", "run", "run_scheduler"),
    ("scheduler", "pause", "pause_scheduler"),
    ("scheduler", "resume", "pause_scheduler"),
    ("schedulerexecution", "cancel", "cancel_execution"),
    ("schedulerexecution", "rerun", "rerun_execution"),
    ("schedulerexecution", "edit_rerun", "rerun_execution"),
    ("failedexecution", "edit", "republish_failedexecution"),
    ("replay", "stop", "republish_failedexecution"),
]
"""One tuple for each page: the model, the page's name, and the permission that the page needs."""


class GuestAdmin(SchedulerAdmin):
    """An example of another project's admin class. It adds a page, overrides a view and adds a URL outside `pages`."""

    pages = (Page("greet", "run", methods=READ),)

    def greet_view(self, request: HttpRequest, row: Scheduler) -> HttpResponse:
        return HttpResponse(f"hello {row.pk}")

    def run_view(self, request: HttpRequest, scheduler: Scheduler) -> HttpResponse:
        response = super().run_view(request, scheduler)
        response["X-Guest"] = "yes"
        return response

    def get_urls(self) -> list[Any]:
        return [path("where/", self.admin_site.admin_view(self.where)), *super().get_urls()]

    def where(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse(execution_url(7))


ops = admin.AdminSite(name="ops")
for model, model_admin in admin.site._registry.items():
    ops.register(model, GuestAdmin if model is Scheduler else type(model_admin))

urlpatterns = [path("admin/", admin.site.urls), path("ops/", ops.urls)]


@pytest.fixture
def guest(settings: Any) -> str:
    """The URL of the list of schedules on the AdminSite that uses GuestAdmin."""
    settings.ROOT_URLCONF = __name__
    return "/ops/scheduling/scheduler/"


@pytest.mark.parametrize(("model", "page", "permission"), OBJECT_PAGES)
@pytest.mark.django_db
def test_permission_is_checked_before_the_row_is_looked_up(model: str, page: str, permission: str) -> None:
    address = reverse(f"admin:scheduling_{model}_{page}", args=[987654])
    allowed = logged_in(UserFactory(permissions=[*VIEW, f"scheduling.{permission}"]))
    others = [f"scheduling.{codename}" for *_page, codename in OBJECT_PAGES if codename != permission]
    refused = [
        logged_in(UserFactory(permissions=rights)) for rights in ([*VIEW, *others], [f"scheduling.{permission}"])
    ]
    assert [client.post(address).status_code for client in refused] == [403, 403]
    response = allowed.post(address)
    assert response.status_code == 302
    there = execution_url(987654) if model == "failedexecution" else list_url(model)
    assert response["Location"] == there


@pytest.mark.django_db
def test_methods_that_a_page_does_not_allow(editor: Client, guest: str) -> None:
    row = SchedulerFactory()
    assert editor.get(f"{guest}{row.pk}/greet/").content == f"hello {row.pk}".encode()
    assert editor.head(f"{guest}{row.pk}/greet/").status_code == 200
    response = editor.post(f"{guest}{row.pk}/greet/")
    assert (response.status_code, response["Allow"]) == (405, "GET, HEAD")
    assert editor.get(f"{guest}987654/greet/").status_code == 302
    refused = logged_in(UserFactory(permissions=VIEW))
    assert [refused.get(f"{guest}{row.pk}/greet/").status_code, refused.post(f"{guest}1/greet/").status_code] == [
        403,
        403,
    ]


@pytest.mark.django_db
def test_a_subclass_keeps_the_pages_of_its_bases(editor: Client, guest: str) -> None:
    row = SchedulerFactory()
    response = editor.get(f"{guest}{row.pk}/run/")
    assert (response.status_code, response["X-Guest"]) == (200, "yes")
    for name in ("pause", "change"):
        assert editor.get(f"{guest}{row.pk}/{name}/").status_code == 200
    assert editor.get(f"{guest}preview/runs/").status_code == 200


@pytest.mark.django_db
def test_a_url_of_a_subclass_belongs_to_the_subclass_site(editor: Client, guest: str) -> None:
    execution = SchedulerExecutionFactory()
    assert editor.get(f"{guest}where/").content == b"/ops/scheduling/schedulerexecution/7/change/"
    assert f'href="/ops/scheduling/scheduler/{execution.scheduler_id}/' in editor.get(guest).content.decode()
    assert execution_url(7) == "/admin/scheduling/schedulerexecution/7/change/"


def test_every_admin_class_of_the_project_uses_pages() -> None:
    ours = [
        own for own in admin.site._registry.values() if type(own).__module__.startswith(("scheduling.", "reports."))
    ]
    assert len(ours) == 24
    for own in ours:
        assert isinstance(own, Pages), own
        assert {f"{own.opts.app_label}_{own.opts.model_name}_changelist"} <= {pattern.name for pattern in own.urls}
