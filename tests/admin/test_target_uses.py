"""Tests of a target's page: it lists the schedules that use the target, and their last runs."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from scheduling.admin.targets import uses
from scheduling.models import Worker
from tests.admin.conftest import logged_in
from tests.factories import SchedulerExecutionFactory, SchedulerFactory, UserFactory

pytestmark = pytest.mark.django_db


def page(client: Client, name: str = "tests.noop") -> str:
    response = client.get(reverse("admin:scheduling_worker_change", args=[Worker.objects.get(name=name).pk]))
    assert response.status_code == 200
    return response.content.decode()


def test_the_schedules_and_runs_of_a_worker(viewer: Client) -> None:
    healthy, failing = SchedulerFactory(description="b healthy"), SchedulerFactory(description="a failing")
    other = SchedulerFactory(description="of another worker", handler="tests.fail")
    SchedulerExecutionFactory(scheduler=healthy, succeeded=True)
    failed = SchedulerExecutionFactory(scheduler=failing, failed=True)
    SchedulerExecutionFactory(scheduler=other, succeeded=True)
    found = page(viewer).split('id="sch-uses"')[1]
    assert re.findall(r"/scheduling/scheduler/(\d+)/change/", found) == [str(failing.pk), str(healthy.pk)]
    assert re.findall(r"/schedulerexecution/(\d+)/change/", found.split('id="sch-target-runs"')[1])[0] == str(failed.pk)
    assert "of another worker" not in found
    assert "/add/" not in found


def test_reports_and_reminders_have_the_same_list() -> None:
    root = logged_in(UserFactory(superuser=True))
    report, reminder = SchedulerFactory(of_report=True), SchedulerFactory(of_reminder=True)
    for name, row, target in (
        ("cron_reports_report", report, report.report), ("scheduling_reminder", reminder, reminder.reminder),
    ):  # fmt: skip
        found = root.get(reverse(f"admin:{name}_change", args=[target.pk])).content.decode()
        assert f"/scheduler/{row.pk}/change/" in found


def test_an_editor_adds_a_schedule_for_the_target(editor: Client) -> None:
    worker = Worker.objects.get(name="tests.noop")
    assert f"/admin/scheduling/scheduler/add/?worker={worker.pk}" in page(editor)
    form = editor.get(f"/admin/scheduling/scheduler/add/?worker={worker.pk}").content.decode()
    assert f'<option value="{worker.pk}" selected>' in form


def test_a_user_sees_only_what_the_user_may_see() -> None:
    row = SchedulerFactory()
    SchedulerExecutionFactory(scheduler=row, succeeded=True)
    only_workers = logged_in(UserFactory(permissions=["scheduling.view_worker"]))
    assert "sch-uses" not in page(only_workers)
    no_runs = logged_in(UserFactory(permissions=["scheduling.view_worker", "scheduling.view_scheduler"]))
    found = page(no_runs)
    assert "sch-uses" in found
    assert "/schedulerexecution/" not in found.split('id="sch-uses"')[1]


def test_the_list_is_bounded(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uses, "LISTED", 2)
    for _schedule in range(3):
        SchedulerExecutionFactory.create_batch(3, scheduler=SchedulerFactory(), succeeded=True)
    with CaptureQueriesContext(connection) as captured:
        found = page(viewer).split('id="sch-uses"')[1]
    assert len(captured) <= 16
    assert len(re.findall(r'href="/admin/scheduling/schedulerexecution/\d+', found)) == 2
    address = re.findall(r'href="([^"]+)">All its schedules', found)[0]
    assert len(viewer.get(address.replace("&amp;", "&")).context["cl"].result_list) == 3
