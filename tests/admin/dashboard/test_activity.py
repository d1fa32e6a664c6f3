"""Tests of the page "Activity": who did what, on all objects."""

from __future__ import annotations

import re

import pytest
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from scheduling.admin.dashboard import activity
from scheduling.models import Scheduler
from scheduling.operations.audit import message
from scheduling.operations.params_diff import Change
from tests.admin.conftest import logged_in
from tests.admin.dashboard.conftest import DASHBOARD, PAGE
from tests.admin.scheduler_form import ADD, change, form, worker
from tests.factories import SchedulerFactory, UserFactory

ADDRESS = f"{PAGE}activity/"


def main(client: Client, query: str = "") -> str:
    response = client.get(f"{ADDRESS}{query}")
    assert response.status_code == 200
    return response.content.decode().split('id="content-main"')[1]


def test_an_edit_stands_there_with_user_object_and_values(editor: Client) -> None:
    assert editor.post(ADD, form(worker=worker(), description="Invoices")).status_code == 302
    row = Scheduler.objects.get()
    editor.post(change(row), form(worker=worker(), description="Bills"))
    page = main(editor)
    assert f'href="/admin/scheduling/scheduler/{row.pk}/change/"' in page
    assert re.search(r"Description: <del><code>Invoices</code></del>\s*<ins><code>Bills</code></ins>", page)
    assert page.index("Bills") < page.index("Added")  # the newest first


def test_a_deleted_object_has_no_link_and_its_text_is_escaped(editor: Client, db: None) -> None:
    row, user = SchedulerFactory(), User.objects.get(username="editor")
    LogEntry.objects.log_actions(user.pk, [row], DELETION, "")
    LogEntry.objects.update(object_repr="<b>gone</b>")
    page = main(editor)
    assert "&lt;b&gt;gone" in page
    assert "/change/" not in page


def test_a_user_sees_entries_only_of_what_the_user_may_view(editor: Client, watcher: Client) -> None:
    editor.post(ADD, form(worker=worker(), description="Invoices"))
    assert "Invoices" not in main(watcher)
    assert "Invoices" in main(logged_in(UserFactory(permissions=[DASHBOARD, "scheduling.view_scheduler"])))


def test_accounts_and_other_apps_are_left_out(db: None) -> None:
    root = logged_in(UserFactory(superuser=True, username="root"))
    user = User.objects.get(username="root")
    LogEntry.objects.log_actions(user.pk, [user], CHANGE, "a password")
    assert "a password" not in main(root)


def test_pages_and_one_user(editor: Client, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity, "LISTED", 2)
    row, ann, bob = SchedulerFactory(), UserFactory(username="ann"), UserFactory(username="bob")
    for number in range(5):
        LogEntry.objects.log_actions((ann if number % 2 else bob).pk, [row], ADDITION, f"deed {number}")
    seen, query = [], ""
    for _page in range(5):
        page = main(editor, query)
        seen += re.findall(r"Deed (\d)", page)
        older = re.findall(r'href="(\?[^"]*)">Older', page)
        if not older:
            break
        query = older[0].replace("&amp;", "&")
    assert seen == ["4", "3", "2", "1", "0"]
    page = main(editor, f"?user={ann.pk}")
    assert re.findall(r"Deed (\d)", page) == ["3", "1"]
    assert "Only what ann did." in page


def test_long_texts_and_many_edits_are_cut(editor: Client, db: None) -> None:
    row, user = SchedulerFactory(), UserFactory()
    edits = [Change(f"params.f{number}", "o" * 5_000, "n" * 5_000) for number in range(30)]
    for _entry in range(50):
        LogEntry.objects.log_actions(user.pk, [row], CHANGE, message("run now", edits))
    page = main(editor)
    assert len(page) < 600_000
    assert "and 20 more" in page


@pytest.mark.parametrize("query", ["?before=x", "?user=%00", "?before=-1&user=99999999999999999999", "?user=0"])
def test_hostile_addresses(editor: Client, query: str) -> None:
    main(editor, query)


def test_the_number_of_queries_does_not_grow(editor: Client, db: None) -> None:
    row, user = SchedulerFactory(), UserFactory()
    for number in range(30):
        LogEntry.objects.log_actions(user.pk, [row], CHANGE, f"deed {number}")
    with CaptureQueriesContext(connection) as captured:
        main(editor)
    assert len(captured) <= 10


def test_it_needs_the_permission_to_see_the_dashboard(no_rights: Client) -> None:
    assert no_rights.get(ADDRESS).status_code == 403
