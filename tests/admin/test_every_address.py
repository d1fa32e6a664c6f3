"""Test the permissions of every address. A user without the button for a change cannot make the change by a POST.

The tests find the addresses in the URLconf and the buttons on the pages. So each new address and each new button is
tested too. A button that changes something must be listed in CHANGES.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client, override_settings
from pytest_django.plugin import DjangoDbBlocker

from scheduling.management.groups import EDITOR, OPERATOR, VIEWER
from tests.admin.addresses import Address, every_address
from tests.admin.audit import entry_line
from tests.admin.conftest import logged_in, member
from tests.admin.rows import Rows, one_of_each
from tests.admin.walk import FILLED, TYPED, Post, press, press_all, text_of, undone
from tests.admin.world import world
from tests.factories import UserFactory, WorkerFactory

pytestmark = pytest.mark.slow

ROLES = (VIEWER, OPERATOR, EDITOR)


class Change(NamedTuple):
    """The role that a button needs, and the log entry that the button makes.

    Args:
        role: the role with the fewest permissions that may press the button.
        trail: a regular expression that matches the log entry with its old and new values.
    """

    role: str
    trail: str


CHANGES = {
    "scheduling_scheduler_run": Change(OPERATOR, r"run now"),
    "scheduling_scheduler_pause": Change(OPERATOR, r"status: yes -> no; pause_reason: \(empty\) -> it is known"),
    "scheduling_scheduler_resume": Change(OPERATOR, r"status: no -> yes"),
    "scheduling_scheduler_changelist: run_selected": Change(OPERATOR, r"run now"),
    "scheduling_scheduler_changelist: pause_selected": Change(OPERATOR, r"status: yes -> no; pause_reason: "),
    "scheduling_scheduler_changelist: resume_selected": Change(OPERATOR, r"status: no -> yes"),
    "scheduling_scheduler_changelist: delete_selected": Change(EDITOR, r"description: .+ -> \(empty\)"),
    "scheduling_scheduler_add": Change(EDITOR, r"description: \(empty\) -> .+; worker: \(empty\) -> .+ schedule: "),
    "scheduling_scheduler_edit": Change(EDITOR, r"description: Schedule \d+ -> described anew"),
    "scheduling_scheduler_delete": Change(EDITOR, r"schedule: 0 8 \* \* \* -> \(empty\)"),
    "scheduling_scheduler_undo": Change(EDITOR, r"undo of revision 2; time_limit: 3600 -> \(empty\)"),
    "scheduling_scheduler_restore": Change(EDITOR, r"state of revision 1 restored; time_limit: 3600 -> \(empty\)"),
    "scheduling_schedulerexecution_cancel": Change(OPERATOR, r"cancel: (asked|cancelled)"),
    "scheduling_schedulerexecution_rerun": Change(OPERATOR, r"run (again|now): execution \d+"),
    "scheduling_schedulerexecution_edit_rerun": Change(OPERATOR, r"run (again|now): .*; params.since_days: 1 -> 7"),
    "scheduling_failedexecution_changelist: republish_selected": Change(OPERATOR, r"republish"),
    "scheduling_failedexecution_changelist: discard_selected": Change(OPERATOR, r"discard: it is known"),
    "scheduling_failedexecution_republish": Change(OPERATOR, r"republish"),
    "scheduling_failedexecution_discard": Change(OPERATOR, r"discard: it is known"),
    "scheduling_failedexecution_edit": Change(OPERATOR, r"republish; params.since_days: 1 -> 7"),
    "scheduling_scheduler_backfill": Change(OPERATOR, r"\d+ occurrences from 20"),
    "scheduling_scheduler_changelist: backfill_selected": Change(OPERATOR, r"\d+ occurrences from 20"),
    "scheduling_backfill_pause": Change(OPERATOR, r"pause: 1 of 3 done"),
    "scheduling_backfill_resume": Change(OPERATOR, r"resume: 1 of 3 done"),
    "scheduling_backfill_cancel": Change(OPERATOR, r"cancel: 1 of 3 done"),
    "scheduling_replay_stop": Change(OPERATOR, r"stop: 1 of 2 sent"),
    "scheduling_worker_changelist: delete_selected": Change(EDITOR, r"name: unused -> \(empty\)"),
    "scheduling_worker_add": Change(EDITOR, r"name: \(empty\) -> unused.too"),
    "scheduling_worker_change": Change(EDITOR, r"description: \(empty\) -> described anew"),
    "scheduling_worker_run": Change(OPERATOR, r"run once: execution \d+"),
    "scheduling_worker_delete": Change(EDITOR, r"name: unused -> \(empty\)"),
    "scheduling_reminder_changelist: delete_selected": Change(EDITOR, r"name: .+ -> \(empty\); subject: Stand-up -> "),
    "scheduling_reminder_add": Change(EDITOR, r"name: \(empty\) -> another; .*subject: \(empty\) -> Another one"),
    "scheduling_reminder_change": Change(EDITOR, r"subject: Stand-up -> Another one"),
    "scheduling_reminder_run": Change(OPERATOR, r"run once: execution \d+"),
    "scheduling_reminder_test": Change(EDITOR, r"test sent"),
    "scheduling_reminder_delete": Change(EDITOR, r"name: .+ -> \(empty\); subject: Stand-up -> \(empty\)"),
    "scheduling_calendar_changelist: delete_selected": Change(EDITOR, r"name: .+ -> \(empty\)"),
    "scheduling_calendar_add": Change(EDITOR, r"name: \(empty\) -> another; .*entries: \(empty\) -> every 12-25 Chr"),
    "scheduling_calendar_change": Change(EDITOR, r"description: .+ -> described anew; entries: sat,sun -> sat$"),
    "scheduling_calendar_delete": Change(EDITOR, r"name: .+ -> \(empty\)"),
    "scheduling_channel_changelist: delete_selected": Change(EDITOR, r"name: .+ -> \(empty\)"),
    "scheduling_channel_add": Change(EDITOR, r"name: \(empty\) -> another; .*address: \(empty\) -> set$"),
    "scheduling_channel_change": Change(EDITOR, r"description: .+ -> described anew$"),
    "scheduling_channel_test": Change(EDITOR, r"test failed"),
    "scheduling_channel_delete": Change(EDITOR, r"name: .+ -> \(empty\)"),
    "scheduling_alertrule_add": Change(EDITOR, r"kind: \(empty\) -> not_finished; name: \(empty\) -> another"),
    "scheduling_alertrule_change": Change(EDITOR, r"at: 06:30 -> 07:15"),
    "scheduling_alertrule_delete": Change(EDITOR, r"name: .+ -> \(empty\)"),
    "scheduling_alertrule_mute": Change(OPERATOR, r"mute; muted_until: .+ mute_reason: .+ -> it is known"),
    "scheduling_alertrule_unmute": Change(OPERATOR, r"unmute; muted_until: .+ -> \(empty\)"),
    "scheduling_alert_acknowledge": Change(OPERATOR, r"acknowledge"),
    "scheduling_alert_take_back": Change(OPERATOR, r"acknowledgement taken back; acknowledged_by: .+ -> \(empty\)"),
    "scheduling_alert_mute": Change(OPERATOR, r"mute; muted_until: .+ mute_reason: .+ -> it is known"),
    "scheduling_alert_unmute": Change(OPERATOR, r"unmute; muted_until: .+ -> \(empty\)"),
    "scheduling_alert_changelist: acknowledge_selected": Change(OPERATOR, r"acknowledge"),
    "scheduling_alert_changelist: take_back_selected": Change(OPERATOR, r"acknowledgement taken back"),
    "scheduling_alert_changelist: mute_selected": Change(OPERATOR, r"mute; muted_until: "),
    "scheduling_alert_changelist: unmute_selected": Change(OPERATOR, r"unmute; muted_until: "),
    "scheduling_apitoken_add": Change(VIEWER, r"name: \(empty\) -> another; prefix: .* permissions: .+ all of"),
    "scheduling_apitoken_revoke": Change(EDITOR, r"revoke"),  # the token of another user
    "scheduling_pause_add": Change(OPERATOR, r"name: \(empty\) -> Everything; reason: \(empty\) -> it is known"),
    "scheduling_pause_change": Change(OPERATOR, r"reason: The warehouse moves -> it is known"),
    "scheduling_loweredlimit_add": Change(OPERATOR, r"name: \(empty\) -> worker tests.two_at_once; "),
    "scheduling_loweredlimit_change": Change(OPERATOR, r"reason: The depot is slow today -> it is known"),
    "scheduling_loweredlimit_delete": Change(OPERATOR, r"at_once: 1 -> \(empty\)"),
    "scheduling_breaker_reset": Change(OPERATOR, r"reset; state: open -> half_open"),
    "scheduling_pause_resume": Change(OPERATOR, r"resume; reason: The warehouse moves -> "),
    "cron_reports_report_changelist: delete_selected": Change(EDITOR, r"controller: .+ -> \(empty\)"),
    "cron_reports_report_add": Change(EDITOR, r"controller: \(empty\) -> unused.too"),
    "cron_reports_report_change": Change(EDITOR, r"description: .* -> described anew"),
    "cron_reports_report_run": Change(OPERATOR, r"run once: execution \d+"),
    "cron_reports_report_delete": Change(EDITOR, r"controller: .+ -> \(empty\)"),
}  # fmt: skip
"""Every POST that changes something. Each key is the name of the address. If the POST is an action of a list, the key
also has the name of the action."""

FOR_VIEWERS = {name for name, change in CHANGES.items() if change.role == VIEWER}

OPEN = {"login", "logout", "jsi18n", "password_change", "password_change_done"}
"""Names of Django's own addresses that change only the user's own account, or change no stored row."""


@pytest.fixture(scope="module")
def kept(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """One transaction around all tests of this module, so that they share the rows. Each test rolls back its own."""
    with django_db_blocker.unblock(), undone():
        yield


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("media")


@pytest.fixture(scope="module")
def rows(kept: None, media: Path) -> Rows:
    """Rows of each model that has pages."""
    with override_settings(MEDIA_ROOT=media):
        return one_of_each()


@pytest.fixture(autouse=True)
def same_media(media: Path, rows: Rows, db: None, settings: Any) -> None:
    """The reports of the rows lie in this folder during each test, too."""
    settings.MEDIA_ROOT = media


@pytest.fixture(scope="module")
def addresses(rows: Rows) -> list[Address]:
    """Every address of the default site."""
    return every_address(rows)


@pytest.fixture(scope="module")
def pressed(rows: Rows, addresses: list[Address], media: Path) -> dict[str, tuple[Post, dict[str, Any]]]:
    """Every POST by which a superuser changes rows, with the changed rows. They are made once for all tests."""
    typed = {
        **TYPED,
        "scheduling_scheduler_add": {"worker": str(WorkerFactory().pk), "schedule": "0 9 * * *"},
        "scheduling_worker_changelist": {"_selected_action": [rows["worker"][0].pk]},
        "scheduling_alertrule_add": {"name": "another", "at": "06:30", "schedule": rows["scheduler"][0].pk},
        "scheduling_calendar_changelist": {"_selected_action": [rows["calendar"][1].pk]},
        "scheduling_channel_changelist": {"_selected_action": [rows["channel"][1].pk]},
    }
    root = logged_in(UserFactory(username="root", superuser=True))
    with override_settings(MEDIA_ROOT=media):
        return press_all(root, [address for address in addresses if address.own], typed)


def test_every_post_that_changes_rows_is_listed_and_logged(
    pressed: dict[str, tuple[Post, dict[str, Any]]],
) -> None:
    assert sorted(pressed) == sorted(CHANGES)
    root = User.objects.get(username="root")
    for key, (_post, changes) in pressed.items():
        entries = changes.get("admin.LogEntry", [])
        assert entries, key
        for entry in entries:
            # The entry's columns are: id, time, user, content type, object, name, flag, message.
            assert entry[2] == root.pk, key
            assert entry[4], key
            assert entry[5], key
            assert re.search(CHANGES[key].trail, said := entry_line(LogEntry(change_message=entry[7]))), (key, said)


@pytest.mark.any_database
def test_a_role_can_make_only_its_own_changes(pressed: dict[str, tuple[Post, Any]]) -> None:
    members = {role: member(role) for role in ROLES}
    for role, (key, (post, _changes)) in product(ROLES, pressed.items()):
        client = members[role]
        response, changes = press(client, post)
        assert response.status_code in (200, 302, 403), key
        assert bool(changes) == (ROLES.index(CHANGES[key].role) <= ROLES.index(role)), (role, key)


@pytest.mark.any_database
def test_no_address_lets_unauthorised_users_change_anything(pressed: dict[str, Any], addresses: list[Address]) -> None:
    viewer, no_rights = member(VIEWER), logged_in(UserFactory(username="no-rights"))
    everything: dict[str, Any] = {**FILLED, "post": "yes", "params": "{}", "typed": "1"}
    for post, _changes in pressed.values():
        everything |= post.data
    before = world()
    for address in addresses:
        if address.name in OPEN:
            continue
        posts = [no_rights.post] if address.name in FOR_VIEWERS else [viewer.post, no_rights.post]
        for method in (viewer.get, no_rights.get, *posts):
            response = method(address.path, everything)
            text_of(response)
            assert response.status_code in (200, 204, 302, 400, 403, 404, 405), address
            assert world() == before, (address, method)


def test_a_get_request_changes_nothing(pressed: dict[str, tuple[Post, Any]], addresses: list[Address]) -> None:
    root = logged_in(User.objects.get(username="root"))
    before = world()
    for path, data in [
        *((address.path, {}) for address in addresses),
        *((p.path, p.data) for p, _ in pressed.values()),
    ]:
        if path != "/admin/logout/":
            text_of(root.get(path, data))
            assert world() == before, path


@pytest.mark.any_database
def test_staff_without_permissions_see_nothing(addresses: list[Address]) -> None:
    client = logged_in(UserFactory(username="no-rights"))
    for address in addresses:
        if address.name in OPEN:
            continue
        response = client.get(address.path, follow=True)
        if address.name in ("", "index") and not address.own and not address.model:  # the root, the index, the icon
            assert response.status_code in (200, 204, 404), address
            if response.status_code == 200 and response["Content-Type"].startswith("text/html"):
                assert "have permission to view or edit anything" in text_of(response)
        else:
            assert response.status_code in (403, 404), address


def test_an_anonymous_user_is_sent_to_the_login_page(addresses: list[Address]) -> None:
    for address in addresses:
        if address.name in OPEN or not address.path.startswith("/admin/"):
            continue
        for method in ("get", "post"):
            response = getattr(Client(), method)(address.path)
            assert response.status_code == 302, address
            assert response["Location"].startswith("/admin/login/"), address


def test_a_viewer_can_open_every_page_that_only_shows_rows(addresses: list[Address]) -> None:
    client = member(VIEWER)
    shows = ("changelist", "change", "history", "part", "output", "follow", "download")
    for address in addresses:
        if (
            address.own
            and address.name.rpartition("_")[2] in shows
            and address.name != "scheduling_failedexecution_change"
            and (address.model != "apitoken" or address.row is None)  # users see their own ones only
        ):
            with undone():
                response = client.get(address.path)
                text_of(response)
            assert response.status_code == 200, address
