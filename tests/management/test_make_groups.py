"""`make_groups` makes the groups viewer, operator and editor, and gives each group its permissions."""

from __future__ import annotations

import io

import pytest
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.core.management.base import CommandError

pytestmark = pytest.mark.django_db

VIEWER = {
    "scheduling.view_dashboard", "scheduling.view_scheduler", "scheduling.view_schedulerexecution",
    "scheduling.view_failedexecution", "scheduling.view_worker", "scheduling.view_reminder", "scheduling.view_channel",
    "scheduling.view_process", "cron_reports.view_report", "scheduling.view_artefact", "scheduling.view_apitoken",
    "scheduling.view_alert", "scheduling.view_alertrule",
    "scheduling.add_apitoken",
}  # fmt: skip
OPERATOR = {
    "scheduling.run_scheduler", "scheduling.backfill_scheduler",
    "scheduling.pause_scheduler", "scheduling.rerun_execution",
    "scheduling.cancel_execution", "scheduling.republish_failedexecution", "scheduling.discard_failedexecution",
    "scheduling.acknowledge_alert",
}  # fmt: skip
EDITOR = {
    f"{app}.{verb}_{model}"
    for app, model in (
        ("scheduling", "scheduler"),
        ("scheduling", "worker"),
        ("cron_reports", "report"),
        ("scheduling", "reminder"),
        ("scheduling", "channel"),
        ("scheduling", "calendar"),
        ("scheduling", "alertrule"),
    )
    for verb in ("add", "change", "delete")
}


ALL = ["viewer", "operator", "editor", "all-groups"]


def make(**options: object) -> list[str]:
    """Run the command and return its lines of output."""
    stream = io.StringIO()
    call_command("make_groups", stdout=stream, **options)
    return stream.getvalue().splitlines()


def held(name: str) -> set[str]:
    """Return the permissions of a group."""
    rows = Group.objects.get(name=name).permissions.values_list("content_type__app_label", "codename")
    return {f"{app}.{code}" for app, code in rows}


def test_each_role_has_what_it_needs_and_no_more() -> None:
    make()
    assert held("viewer") >= VIEWER
    acts = {name for name in held("viewer") if not name.split(".")[1].startswith("view_")}
    assert acts == {"scheduling.add_apitoken"}  # a token allows no more than its owner may do
    assert held("operator") - held("viewer") >= OPERATOR
    assert not {
        name
        for name in held("operator") - held("viewer")
        if name.split(".")[1].startswith(("add_", "change_", "delete_"))
    }
    assert held("editor") - held("operator") == EDITOR | {"scheduling.revoke_any_token"}
    assert held("viewer") < held("operator") < held("editor")
    assert {name.split(".")[0] for name in held("editor")} == {"scheduling", "cron_reports"}


def test_no_role_sees_all_groups() -> None:
    make()
    assert held("all-groups") == {"scheduling.view_all_groups"}
    assert "scheduling.view_all_groups" not in held("editor")


def test_a_new_permission_is_for_the_operator() -> None:
    kind = ContentType.objects.get(app_label="scheduling", model="failedexecution")
    make()
    Permission.objects.create(content_type=kind, codename="stop_replay", name="Can stop")
    assert "operator: is there. It lacks scheduling.stop_replay; --update gives them." in make()
    assert "scheduling.stop_replay" not in held("operator")
    assert "operator: given scheduling.stop_replay." in make(update=True)
    assert "scheduling.stop_replay" in held("editor")
    assert "scheduling.stop_replay" not in held("viewer")


def test_an_existing_group_is_not_changed() -> None:
    Group.objects.create(name="editor")  # a project may already have a group with this name
    lines = make()
    assert lines[2].startswith("editor: is there. It lacks cron_reports.add_report, ")
    assert held("editor") == set()
    assert [line.split(":")[0] for line in make(prefix="cron ")] == [f"cron {name}" for name in ALL]
    assert held("cron editor") > held("viewer")


def test_no_permission_is_removed() -> None:
    make()
    group = Group.objects.get(name="viewer")
    group.permissions.add(Permission.objects.get(codename="view_user"))
    assert make(update=True) == [f"{name}: is there, and complete." for name in ALL]
    assert "auth.view_user" in held("viewer")


def test_before_migrate_it_says_what_to_do() -> None:
    Permission.objects.all().delete()
    with pytest.raises(CommandError, match="run migrate first"):
        make()
    assert not Group.objects.exists()
