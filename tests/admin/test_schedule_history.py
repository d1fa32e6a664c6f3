"""The history of a schedule: one list of revisions and other acts, with undo and restore."""

from __future__ import annotations

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from scheduling.models import Scheduler, ScheduleRevision
from scheduling.models.visibility import VIEW_ALL_GROUPS
from tests.admin.conftest import logged_in
from tests.admin.scheduler_form import change, form, worker
from tests.factories import CalendarFactory, GroupFactory, SchedulerExecutionFactory, SchedulerFactory, UserFactory

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@pytest.fixture
def root() -> Client:
    return logged_in(UserFactory(username="anna", superuser=True))


def page(name: str, row: Scheduler) -> str:
    return reverse(f"admin:scheduling_scheduler_{name}", args=[row.pk])


def text(client: Client, row: Scheduler, query: str = "") -> str:
    """The visible text of the history."""
    response = client.get(page("history", row) + query)
    assert response.status_code == 200
    body = response.content.decode().partition('id="content-main"')[2]
    return " ".join(re.sub(r"<[^>]+>", " ", body).split())


def test_an_edit_is_told_once_with_its_reason_and_run_now_stands_beside_it(root: Client) -> None:
    row = SchedulerFactory(schedule="0 8 * * *")
    posted = form(worker=worker(), schedule="0 9 * * *", change_reason="the <b>shop</b> opens later", description="x")
    root.post(change(row), posted)
    root.post(page("run", row), {})
    root.post(page("pause", row), {"reason": "storage full"})
    said = text(root, row)
    assert LogEntry.objects.filter(object_id=str(row.pk)).count() == 3
    assert said.count("0 9 * * *") == 1
    assert said.count("Reason: storage full") == 1
    assert "the &lt;b&gt;shop&lt;/b&gt; opens later" in said
    assert said.index("Revision 3") < said.index("Run now") < said.index("Revision 2") < said.index("Revision 1")
    assert "4 entries" in said


def test_entries_from_before_the_first_revision_stay(root: Client) -> None:
    row = SchedulerFactory()
    root.post(change(row), form(worker=worker(), schedule="0 9 * * *", description=row.description))
    ScheduleRevision.objects.filter(schedule=row.pk).delete()
    assert "0 9 * * *" in text(root, row)


def test_undo_shows_what_changes_and_the_next_runs_then_does_it_once(root: Client) -> None:
    row = SchedulerFactory(schedule="0 8 * * *")
    root.post(change(row), form(worker=worker(), schedule="30 9 * * *", description=row.description))
    shown = root.get(page("undo", row) + "?number=2").content.decode()
    assert "30 9 * * *" in shown
    assert "0 8 * * *" in shown
    assert re.search(r"Next runs now.*09:30.*Next runs then.*08:00", shown, re.DOTALL)
    assert Scheduler.objects.get(pk=row.pk).schedule == "30 9 * * *"
    answer = root.post(page("undo", row), {"number": "2", "reason": "too late"}, follow=True)
    assert "was changed back" in answer.content.decode()
    assert Scheduler.objects.get(pk=row.pk).schedule == "0 8 * * *"
    newest = ScheduleRevision.objects.of(row.pk).first()
    assert newest is not None
    assert (newest.number, newest.undoes, newest.author, newest.reason) == (3, 2, "anna", "too late")
    again = root.post(page("undo", row), {"number": "2"}, follow=True)
    assert "Revision 3 has changed" in again.content.decode()
    assert ScheduleRevision.objects.of(row.pk).count() == 3
    root.post(page("restore", row), {"number": "2"})
    assert Scheduler.objects.get(pk=row.pk).schedule == "30 9 * * *"


@pytest.mark.parametrize("number", ["", "x", "99", "1", "9" * 30, "-1", "2'"])
def test_a_number_that_cannot_be_undone_leads_back_with_a_sentence(root: Client, number: str) -> None:
    row = SchedulerFactory()
    for method in (root.get, root.post):
        answer = method(page("undo", row), {"number": number}, follow=True)
        assert answer.redirect_chain[-1][0] == page("history", row)
        assert 'class="messagelist"' in answer.content.decode()
    assert ScheduleRevision.objects.of(row.pk).count() == 1


def test_only_users_who_may_change_it_get_the_links_and_pages() -> None:
    row = SchedulerFactory()
    row.time_limit = 5
    row.save()
    viewer = logged_in(UserFactory(permissions=["scheduling.view_scheduler"]))
    assert "Undo" not in text(viewer, row)
    for name in ("undo", "restore"):
        assert viewer.post(page(name, row), {"number": "2"}).status_code == 403
    other = SchedulerFactory(group=GroupFactory())
    other.time_limit = 5
    other.save()
    editor = logged_in(UserFactory(permissions=["scheduling.view_scheduler", "scheduling.change_scheduler"]))
    assert "Undo revision 2" in text(editor, row)
    for name in ("history", "undo"):
        assert other.description not in editor.get(page(name, other), {"number": "2"}, follow=True).content.decode()
    assert Scheduler.objects.get(pk=other.pk).time_limit == 5
    assert VIEW_ALL_GROUPS


def test_hostile_revisions_can_be_shown(root: Client) -> None:
    row = SchedulerFactory(description="\u202e<b>\x1b[31m")
    row.description = "x"
    row.save()
    for values in (
        {"state": "{", "edits": "[1]", "digests": "5"},
        {"edits": '{"worker_id": {"old": "x", "new": [1]}, "params.\\u202e": {"new": {"a": "<script>"}}, "a": 5}'},
        {"kind": "odd", "author_kind": "odd", "author": "<b>\u202e", "reason": "\x1b", "undoes": 77},
    ):
        ScheduleRevision.objects.filter(schedule=row.pk, number=2).update(**values)
        said = text(root, row)
        assert "Revision 2" in said
        assert "\u202e" not in said
        assert "<script>" not in said
        for name in ("undo", "restore"):
            assert root.get(page(name, row) + "?number=2").status_code in (200, 302)


def test_the_page_of_an_execution_leads_to_its_revision(root: Client) -> None:
    row = SchedulerFactory()
    execution = SchedulerExecutionFactory(scheduler=row, revision=7)
    address = reverse("admin:scheduling_schedulerexecution_change", args=[execution.pk])
    shown = root.get(address).content.decode()
    assert f'<a href="{page("history", row)}">revision 7</a>' in shown
    viewer = logged_in(UserFactory(permissions=["scheduling.view_schedulerexecution"]))
    shown = viewer.get(address).content.decode()
    assert "revision 7" in shown
    assert page("history", row) not in shown


def test_a_calendar_is_named_if_all_users_see_it_and_the_undo_shows_the_fields_by_their_labels(root: Client) -> None:
    group = GroupFactory()
    own, other = CalendarFactory(name="Holidays <DE>"), CalendarFactory(name="Depot", group=group)
    row = SchedulerFactory(group=group)
    for found in (own, other):
        row.calendar, row.status = found, not row.status
        row.save()
    said = text(root, row)
    assert "Holidays &lt;DE&gt;" in said
    assert f"calendar {other.pk}" in said
    assert "Depot" not in said
    undo = root.get(page("undo", row), {"number": "3"}).content.decode()
    for words in ("<code>Calendar</code>", "<code>Paused</code>", ">Field<", "Holidays &lt;DE&gt;"):
        assert words in undo


def test_many_revisions_have_pages(root: Client) -> None:
    row = SchedulerFactory()
    first = ScheduleRevision.objects.get(schedule=row.pk)
    ScheduleRevision.objects.bulk_create(
        ScheduleRevision(schedule=row.pk, number=number, kind="changed", state=first.state, author_kind="sql",
                         edits=f'{{"time_limit": {{"old": {number}, "new": {number + 1}}}}}', at=first.at)
        for number in range(2, 252)
    )  # fmt: skip
    said = text(root, row, "?p=3")
    assert "251 entries" in said
    assert "Revision 1 " in said
    assert "Revision 251 " not in said
