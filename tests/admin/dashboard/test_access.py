"""Tests of the dashboard's permissions, and of the buttons and links that each user sees on the dashboard."""

from __future__ import annotations

import io
import re

import pytest
from django.core.management import call_command
from django.test import Client

from scheduling.admin.dashboard.view import PARTS
from scheduling.models import Scheduler, SchedulerExecution
from tests.admin.dashboard.conftest import PAGE, address
from tests.factories import SchedulerExecutionFactory, SchedulerFactory

ADDRESSES = [PAGE, *(f"{PAGE}part/{name}/" for name in PARTS)]


@pytest.mark.parametrize("path", ADDRESSES)
def test_page_and_parts_need_the_dashboard_permission(
    no_rights: Client, watcher: Client, client: Client, path: str
) -> None:
    assert no_rights.get(path).status_code == 403
    assert watcher.get(path).status_code == 200
    assert client.get(path).status_code == 302


@pytest.mark.parametrize("path", ADDRESSES)
def test_the_dashboard_accepts_no_post(editor: Client, path: str) -> None:
    assert editor.post(path).status_code == 405


def test_an_unknown_part_is_not_found(viewer: Client) -> None:
    assert viewer.get(f"{PAGE}part/secrets/").status_code == 404


def test_the_sidebar_links_to_the_dashboard_only_with_permission(viewer: Client, no_rights: Client) -> None:
    assert f'href="{PAGE}"' in viewer.get("/admin/scheduling/").content.decode()
    assert f'href="{PAGE}"' not in no_rights.get("/admin/").content.decode()


def test_the_dashboard_has_no_pages_for_rows(editor: Client) -> None:
    for path in ("add/", "1/change/", "1/delete/", "1/history/"):
        assert editor.get(PAGE + path).status_code == 404


def test_a_viewer_sees_no_buttons(viewer: Client, at_work: None) -> None:
    SchedulerExecutionFactory(running=True)
    page = _main(viewer.get(f"{PAGE}?everything").content.decode())
    # The only button switches the automatic refresh on and off. It is hidden until the page's script has started.
    assert re.findall(r"<button[^>]*>", page) == ['<button type="button" hidden>']
    assert "<form" not in page
    assert "/cancel/" not in page


def test_dashboard_links_only_to_pages_that_the_user_may_open(watcher: Client) -> None:
    SchedulerExecutionFactory(failed=True)
    SchedulerExecutionFactory(running=True)
    page = _main(watcher.get(f"{PAGE}?everything").content.decode())
    for link in re.findall(r'href="([^"#]+)"', page):
        assert watcher.get(link).status_code == 200, link


def test_run_now_from_the_dashboard_ignores_a_second_click(operator: Client) -> None:
    row = SchedulerFactory()
    page = operator.get(address("schedules")).content.decode()
    form = re.search(rf'action="(/admin/scheduling/scheduler/{row.pk}/run/)".*?name="key" value="([^"]+)"', page, re.S)
    assert form
    for _click in range(2):
        operator.post(form[1], {"key": form[2]})
    assert SchedulerExecution.objects.filter(scheduler=row).count() == 1


def test_an_operator_pauses_and_resumes_from_the_dashboard(operator: Client) -> None:
    row = SchedulerFactory()
    page = operator.get(address("schedules")).content.decode()
    pause = re.search(rf'href="(/admin/scheduling/scheduler/{row.pk}/pause/\?back=dashboard)"', page)
    assert pause
    response = operator.post(pause[1], {"reason": "the <i>warehouse</i> moves"})
    assert (response.status_code, response["Location"]) == (302, PAGE)
    assert not Scheduler.objects.get(pk=row.pk).status
    page = operator.get(address("schedules")).content.decode()
    assert "the &lt;i&gt;warehouse&lt;/i&gt; moves" in page
    resume = re.search(rf'<form method="post" action="(/admin/scheduling/scheduler/{row.pk}/resume/)">', page)
    assert resume
    assert operator.post(resume[1], {"back": "dashboard"})["Location"] == PAGE
    assert Scheduler.objects.get(pk=row.pk).status


def test_each_form_carries_a_csrf_token(operator: Client) -> None:
    SchedulerFactory()
    page = operator.get(address("schedules")).content.decode()
    assert page.count("<form") == page.count("csrfmiddlewaretoken") > 0


def test_a_running_execution_links_to_its_cancel_page(operator: Client) -> None:
    row = SchedulerExecutionFactory(running=True)
    assert f"/admin/scheduling/schedulerexecution/{row.pk}/cancel/" in operator.get(address("running")).content.decode()


@pytest.mark.django_db
def test_dumpdata_skips_the_model_without_a_table() -> None:
    call_command("dumpdata", "scheduling", stdout=io.StringIO())


def _main(page: str) -> str:
    return page[page.index('<div id="content-main"') : page.index("<footer")]
