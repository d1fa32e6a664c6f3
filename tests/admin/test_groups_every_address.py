"""A member of one group finds nothing of another group at any address: no name, no text, no number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.contrib.messages import get_messages
from django.test import Client

from scheduling.admin.dashboard import heatmap, timeline
from scheduling.management.groups import EDITOR, make_groups
from scheduling.models import Alert, Scheduler, SchedulerExecution
from scheduling.monitoring.findings.finding import Finding
from tests.admin.addresses import Address, every_address
from tests.admin.conftest import logged_in
from tests.admin.group_rows import crossed, rows_of, without_rule
from tests.admin.rows import Rows, one_of_each
from tests.admin.walk import FILLED, TYPED, press, press_all, text_of, undone
from tests.admin.world import changed, world
from tests.factories import UserFactory, WorkerFactory
from tests.server_share import rows_to_walk, walks_one_row

pytestmark = pytest.mark.django_db

MARK, OWN = "zebra-b", "lion-a"
S = "/admin/scheduling"
KEPT = {"logout"}


@pytest.fixture
def team(db: None) -> Group:
    return Group.objects.create(name=f"{OWN} team")


@pytest.fixture
def others(db: None) -> Group:
    return Group.objects.create(name=f"{MARK} team")


@pytest.fixture
def user(team: Group) -> User:
    """An editor who is a member of one team."""
    list(make_groups())
    found: User = UserFactory(username="editor", email="editor@example.com")
    found.groups.add(team, Group.objects.get(name=EDITOR))
    return found


@pytest.fixture
def own(team: Group, settings: Any, tmp_path: Path) -> Rows:
    """Rows without a group, and rows of the team."""
    settings.MEDIA_ROOT = tmp_path
    return together(one_of_each(), rows_of(team, OWN))


@pytest.fixture
def hidden(others: Group, own: Rows) -> Rows:
    """Rows of the other team."""
    return rows_of(others, MARK)


@pytest.fixture
def moved(team: Group, others: Group, hidden: Rows) -> Sequence[SchedulerExecution]:
    return crossed(team, others, MARK)


def together(*some: Rows) -> Rows:
    return {
        name: [row for rows in some for row in rows.get(name, ())] for name in {name for rows in some for name in rows}
    }


def see_all(user: User) -> Client:
    """Give the user the permission, and return a new client."""
    user.user_permissions.add(Permission.objects.get(codename="view_all_groups"))
    heatmap.forget()
    return logged_in(User.objects.get(pk=user.pk))


def lists(hidden: Rows) -> Iterator[str]:
    """Addresses with a query string: searches, filters, orders, and the other views of lists."""
    schedule, execution, artefact = hidden["scheduler"][0], hidden["schedulerexecution"][0], hidden["artefact"][0]
    group = execution.group_id  # type: ignore[attr-defined]
    runs, inbox, schedules = f"{S}/schedulerexecution/", f"{S}/failedexecution/", f"{S}/scheduler/"
    words = (
        "zebra",
        "schedule:zebra",
        "target:zebra",
        "error:zebra",
        "key:zebra",
        f"id:{execution.pk}",
        "param:note=x",
    )
    for address in (runs, inbox):
        yield from (f"{address}?q={word}" for word in words)
        yield f"{address}?scheduler={schedule.pk}"
        yield f"{address}?q=schedule:{schedule.pk}"
        yield f"{address}?group__id__exact={group}"
        yield f"{address}?all="
    yield from (
        f"{runs}?{query}" for query in ("took=slow", "took=1m", "o=-4", "within=night", "within=24h", "state=failed")
    )
    yield from (f"{runs}?state={state}&type=worker" for state in ("running", "skipped", "retrying", "queued"))
    yield from (f"{inbox}?{query}" for query in ("group=error", "group=each", "age=24h", "o=2", "type=worker"))
    yield from (
        f"{schedules}?{query}" for query in ("q=zebra", "health=failing", "health=paused", "health=late", "o=1")
    )
    yield from (
        f"{schedules}?group__id__exact={group}",
        f"{schedules}?status__exact=0",
        f"{schedules}add/?copy={schedule.pk}",
    )
    yield from (f"{S}/artefact/?q=zebra", f"{S}/artefact/?q={artefact.execution_id}", f"{S}/replay/?state=waiting")  # type: ignore[attr-defined]
    yield from (f"{S}/dashboard/?everything", f"{S}/dashboard/?p=2", f"{S}/dashboard/activity/?before=999999")
    alerts = f"{S}/alert/"
    yield from (f"{alerts}?{query}" for query in ("state=all", "state=new", "state=over", "q=zebra"))
    yield from (f"{alerts}?schedule={schedule.pk}", f"{alerts}?group__id__exact={group}")
    yield f"{S}/calendar/?group__id__exact={group}"
    yield f"{S}/alertrule/?group__id__exact={group}"
    reminder_channels = "app_label=scheduling&model_name=reminder&field_name=channels"
    yield f"/admin/autocomplete/?{reminder_channels}&term=zebra"
    for model, field in (("schedulerexecution", "scheduler"), ("failedexecution", "scheduler")):
        yield f"/admin/autocomplete/?app_label=scheduling&model_name={model}&field_name={field}&term=zebra"
    for row in hidden["scheduler"][:2]:
        yield f"{schedules}{row.pk}/why/?at=03:00"
    worker = schedule.worker_id  # type: ignore[attr-defined]
    yield f"{S}/worker/{worker}/change/"
    yield f"{S}/worker/{worker}/delete/"
    report, reminder = hidden["scheduler"][-2], hidden["scheduler"][-1]
    yield f"/admin/cron_reports/report/{report.report_id}/change/"  # type: ignore[attr-defined]
    yield f"/admin/cron_reports/report/{report.report_id}/delete/"  # type: ignore[attr-defined]
    yield f"{S}/reminder/{reminder.reminder_id}/change/"  # type: ignore[attr-defined]
    yield f"{S}/reminder/{reminder.reminder_id}/delete/"  # type: ignore[attr-defined]


def told(client: Client, path: str, followed: set[str] | None = None) -> tuple[int, str]:
    """The status, and all that the response says: its text, its headers and its messages. Redirects are followed.

    Args:
        followed: the addresses that redirects have led to. Each is read once, because a list of a hundred rows is slow.
    """
    followed = set() if followed is None else followed
    response = client.get(path)
    said = f"{text_of(response)}\n{dict(response.items())}\n{[str(one) for one in get_messages(response.wsgi_request)]}"
    target = response.headers.get("Location", "")
    if not target or target in followed:
        client.cookies.pop("messages", None)
        return response.status_code, said.lower()
    followed.add(target)
    status, more = told(client, urljoin(path, target), followed)
    return status, said.lower() + more


def addresses(rows: Rows) -> list[Address]:
    return [address for address in every_address(rows) if address.name not in KEPT]


def with_marker(client: Client, paths: Sequence[str]) -> set[str]:
    found, followed = set(), set[str]()
    for path in paths:
        with undone():
            if MARK in told(client, path, followed)[1]:
                found.add(path)
    return found


def all_paths(own: Rows, hidden: Rows) -> list[str]:
    rows = together(own, hidden)
    walked = rows_to_walk(addresses(rows), flat(hidden))
    return [*dict.fromkeys([*(address.path for address in walked), *lists(hidden)])]


@pytest.mark.long
@pytest.mark.slow
def test_no_address_shows_anything_of_another_group(user: User, own: Rows, hidden: Rows, moved: Any) -> None:
    paths = [*all_paths(own, hidden), *(f"{S}/schedulerexecution/{row.pk}/change/" for row in moved)]
    assert len(paths) > (200 if walks_one_row() else 300)
    assert with_marker(logged_in(user), paths) == set()


@pytest.mark.any_database
@pytest.mark.slow
def test_the_same_user_with_the_permission_finds_it(user: User, own: Rows, hidden: Rows, moved: Any) -> None:
    """Otherwise the test above would pass on pages that show nothing at all.

    The pages of the user's own rows are left out: they need not name another group.
    """
    hidden_rows, every = flat(hidden), addresses(together(own, hidden))
    about = [address for address in every if address.row in hidden_rows]
    of_no_row = [address for address in every if address.row is None]
    found = with_marker(
        see_all(user), [*dict.fromkeys([*(address.path for address in [*about, *of_no_row]), *lists(hidden)])]
    )
    speaking = {address.name for address in about if address.path in found}
    assert {address.name for address in about} - speaking - SILENT == set()
    assert {path for path in EXPECTED if path not in found} == set()
    quiet = [path for path in lists(hidden) if path not in found and not any(part in path for part in QUIET)]
    assert quiet == []


SILENT = {
    "scheduling_schedulerexecution_chip", "scheduling_failedexecution_change", "scheduling_replay_stop",
    "scheduling_scheduler_why", "scheduling_schedulerexecution_output", "scheduling_schedulerexecution_follow",
    "scheduling_scheduler_params", "", "scheduling_artefact_history", "scheduling_failedexecution_history",
    "scheduling_failedexecution_delete", "scheduling_schedulerexecution_delete", "scheduling_artefact_delete",
    "scheduling_alert_acknowledge", "scheduling_alert_take_back", "scheduling_alert_unmute", "scheduling_alert_delete",
    "scheduling_alertrule_unmute", "scheduling_channel_test",
    "scheduling_replay_delete", "scheduling_scheduler_resume", "scheduling_scheduler_pause",
    "scheduling_scheduler_changes", "scheduling_backfill_pause", "scheduling_backfill_resume",
    "scheduling_backfill_cancel", "scheduling_backfill_delete", "scheduling_movedrun_delete",
    "scheduling_movedrun_history",
}  # fmt: skip
"""Addresses that say little about each row: a state, the output of a run without output, or a redirect."""

EXPECTED = [
    f"{S}/dashboard/", f"{S}/dashboard/activity/", f"{S}/dashboard/part/attention/", f"{S}/dashboard/part/running/",
    f"{S}/dashboard/part/timeline/", f"{S}/dashboard/part/schedules/", f"{S}/scheduler/", f"{S}/schedulerexecution/",
    f"{S}/failedexecution/", f"{S}/replay/", f"{S}/replay/part/", f"{S}/artefact/",
    f"{S}/schedulerexecution/retention/", f"{S}/alert/", f"{S}/alertrule/", f"{S}/channel/", f"{S}/calendar/",
]  # fmt: skip

QUIET = ("p=2", "param:note=x", "took=1m", "within=night", "/scheduler/add/?copy=nothing", "o=2")


def flat(rows: Rows) -> list[Any]:
    return [row for found in rows.values() for row in found]


@pytest.mark.slow
def test_an_address_of_a_hidden_row_answers_as_if_there_were_no_such_row(user: User, own: Rows, hidden: Rows) -> None:
    client = logged_in(user)
    hidden_rows, of_missing = flat(hidden), dict[str, int]()
    for address in rows_to_walk(addresses(together(own, hidden)), hidden_rows):
        if address.row not in hidden_rows:
            continue
        with undone():
            response = client.get(address.path)
            text = text_of(response)
        if address.name.endswith(("_chip", "_params")):
            assert MARK not in text
        else:
            assert response.status_code in (302, 404, 403, 405), address
        missing = address.path.replace(f"/{address.row.pk}/", "/987654321/")
        if missing not in of_missing:  # one answer for all rows of a model
            with undone():
                of_missing[missing] = client.get(missing).status_code
        assert of_missing[missing] == response.status_code, address


@pytest.mark.slow
def test_no_post_changes_a_row_of_another_group(user: User, own: Rows, hidden: Rows) -> None:
    """Each button that a user who sees all presses on the rows of the other group does nothing for the member."""
    root = logged_in(UserFactory(username="root", superuser=True))
    walked = rows_to_walk(addresses(together(own, hidden)), flat(hidden))
    only = [address for address in walked if address.row in flat(hidden)]
    typed = {**TYPED, "scheduling_scheduler_edit": {"description": "taken over"}}
    pressed = press_all(root, only, typed)
    assert {"scheduling_scheduler_run", "scheduling_scheduler_edit", "scheduling_failedexecution_republish"} <= {
        *pressed
    }
    client = logged_in(user)
    for key, (post, _changes) in pressed.items():
        response, changes = press(client, post)
        assert not changes, key
        assert response.status_code in (302, 404, 403), key


ACTIONS = {
    "scheduler": ("run_selected", "pause_selected", "resume_selected", "delete_selected"),
    "failedexecution": ("republish_selected", "discard_selected"),
    "alert": ("acknowledge_selected", "take_back_selected", "mute_selected", "unmute_selected"),
}


@pytest.mark.parametrize(("model", "action"), [(model, action) for model, found in ACTIONS.items() for action in found])
@pytest.mark.parametrize("across", [0, 1])
@pytest.mark.parametrize("canary", ["", "on"])
def test_no_action_of_a_list_reaches_a_hidden_row(
    user: User, own: Rows, hidden: Rows, model: str, action: str, across: int, canary: str
) -> None:
    keys = [str(row.pk) for row in hidden[model]]
    before = standing(hidden)
    client = logged_in(user)
    count = len(own[model])
    data = {
        **FILLED, "action": action, "_selected_action": keys, "select_across": across, "post": "yes", "minutes": "0",
        "typed": str(count), "count": str(count), "query": "", "canary": canary, "index": "0", "span": "1h",
    }  # fmt: skip
    text_of(client.post(f"{S}/{model}/", data, follow=True))
    assert standing(hidden) == before
    assert not SchedulerExecution.objects.filter(trigger="manual", group__name__startswith=MARK).exists()


def standing(hidden: Rows) -> list[Any]:
    schedules = Scheduler.objects.filter(pk__in=[row.pk for row in hidden["scheduler"]]).order_by("pk").values()
    keys = [row.pk for row in hidden["schedulerexecution"]]
    alerts = Alert.objects.filter(pk__in=[row.pk for row in hidden["alert"]]).order_by("pk").values()
    return [*schedules, *alerts, *SchedulerExecution.objects.filter(pk__in=keys).order_by("pk").values()]


def test_actions_do_reach_the_rows_that_are_seen(user: User, own: Rows, hidden: Rows) -> None:
    client = logged_in(user)
    data = {**FILLED, "action": "discard_selected", "_selected_action": ["all"], "select_across": 1, "post": "yes",
            "typed": "999", "count": "999", "query": ""}  # fmt: skip
    before = world()
    text_of(client.post(f"{S}/failedexecution/", data))
    assert "scheduling.SchedulerExecution" in changed(before, world())


# --- numbers


def _finding(finding: Finding) -> tuple[str, int, str]:
    return finding.check, len(finding.rows), str(finding.more)


def figures(client: Client) -> dict[str, Any]:
    """The numbers that pages show a user."""
    heatmap.forget()
    dashboard = client.get(f"{S}/dashboard/?everything")
    text_of(dashboard)
    parts: dict[str, Any] = dashboard.context["parts"]
    inbox, runs = client.get(f"{S}/failedexecution/?group=each"), client.get(f"{S}/schedulerexecution/")
    grouped = client.get(f"{S}/failedexecution/?group=error").context["groups"]
    return {
        "tiles": [str(tile["value"]) for tile in parts["tiles"]["tiles"][:4]],
        "said": parts["tiles"]["said"],
        "findings": sorted(_finding(problem["finding"]) for problem in parts["attention"]["problems"]),
        "running": len(parts["running"]["lines"]),
        "upcoming": len(parts["timeline"]["soonest"]),
        "next_day": parts["next_day"]["total"],
        "heatmap": str(parts["heatmap"]["picture"]).count("dash-bad"),
        "heat words": "failed" in str(parts["heatmap"]["picture"]),
        "schedules": parts["schedules"]["page"].paginator.count,
        "summary": [sentence for sentence in inbox.context["summary"] if "failed exec" in sentence],
        "inbox": inbox.context["cl"].result_count,
        "groups": [(group.name, group.count) for group in grouped.rows],
        "sidebar": [model["name"] for model in inbox.context["available_apps"][0]["models"]],
        "runs": runs.context["cl"].result_count,
        "list": client.get(f"{S}/scheduler/").context["cl"].result_count,
        "alerts": client.get(f"{S}/alert/").context["cl"].result_count,
        "rules": client.get(f"{S}/alertrule/").context["cl"].result_count,
        "channels": client.get(f"{S}/channel/").context["cl"].result_count,
        "replays": client.get(f"{S}/replay/").context["cl"].result_count,
        "artefacts": client.get(f"{S}/artefact/").context["cl"].result_count,
        "targets": [str(menu.choices) for menu in inbox.context["cl"].bar.menus],
    }  # fmt: skip


def test_no_number_counts_rows_of_another_group(
    user: User, own: Rows, others: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "SOONEST", 1_000)  # at some hours, own schedules alone would fill the list
    client = logged_in(user)
    before = figures(client)
    rows_of(others, MARK)
    assert figures(client) == before
    after = figures(see_all(user))
    assert {name for name, value in after.items() if value == before[name]} <= {"heat words", "heatmap"}


def test_the_counts_of_the_heat_map_are_not_shared_between_users(user: User, own: Rows, hidden: Rows) -> None:
    member, all_groups = logged_in(user), logged_in(UserFactory(username="root", superuser=True))
    address = f"{S}/dashboard/part/heatmap/"
    heatmap.forget()
    first = text_of(all_groups.get(address))
    second = text_of(member.get(address))
    assert first != second
    assert text_of(all_groups.get(address)) == first


def test_the_walk_finds_the_marker_if_the_rule_is_taken_out(user: User, own: Rows, hidden: Rows) -> None:
    paths = [f"{S}/scheduler/", f"{S}/schedulerexecution/", f"{S}/failedexecution/", f"{S}/dashboard/part/running/"]
    assert with_marker(logged_in(user), paths) == set()
    with without_rule():
        assert with_marker(logged_in(user), paths) == {*paths}


def test_a_post_with_another_target_is_no_way_in(user: User, hidden: Rows) -> None:
    """The fields of the form of a schedule are fetched by a POST with the schedule's primary key."""
    client = logged_in(user)
    key = hidden["scheduler"][0].pk
    response = client.post(f"{S}/scheduler/params/{key}/", {"worker": WorkerFactory().pk})
    assert MARK not in text_of(response)
