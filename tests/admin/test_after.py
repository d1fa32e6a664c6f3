"""The form and the pages of a schedule that waits for another one. A name of another group is never shown."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from scheduling.admin.executions.why import why
from scheduling.core.time_spans import spell_time_span
from scheduling.management.groups import EDITOR, VIEWER, make_groups
from scheduling.models import Scheduler
from tests.admin.conftest import logged_in
from tests.admin.scheduler_form import ADD, change, form, overview, worker
from tests.factories import SchedulerExecutionFactory, SchedulerFactory, UserFactory
from tests.support import NOON

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(db: None) -> Client:
    return logged_in(UserFactory(username="root", superuser=True))


@pytest.fixture
def member(db: None) -> Client:
    list(make_groups())
    user = UserFactory(username="ann")
    user.groups.add(Group.objects.create(name="team"), Group.objects.get(name=EDITOR))
    return logged_in(user)


@pytest.fixture
def secret(db: None) -> Scheduler:
    return SchedulerFactory(description="Payroll", group=Group.objects.create(name="others"))


def posted(client: Client, address: str, **values: Any) -> Any:
    return client.post(address, form(worker=worker(), **values))


def errors(response: Any) -> dict[str, list[str]]:
    return dict(response.context["adminform"].form.errors)


def test_the_form_stores_how_it_waits_and_the_pages_say_so(root: Client) -> None:
    first = SchedulerFactory(description="Load <data>")
    values = {"after": first.pk, "after_span": "previous", "after_within_seconds": "90m", "after_late": "fail"}
    assert posted(root, ADD, description="Report", **values).status_code == 302
    row = Scheduler.objects.get(description="Report")
    assert (row.after, row.after_span, row.after_within_seconds, row.after_late) == (first, "previous", 5_400, "fail")
    page = root.get(overview(row)).content.decode()
    assert (
        "Load &lt;data&gt;</a>: its last run since the run before of this schedule. It waits at most 1 h 30 min" in page
    )
    assert "1 schedule waits for this one" in root.get(overview(first)).content.decode()
    assert f'value="{spell_time_span(5_400_000)}"' in root.get(change(row)).content.decode()
    assert posted(root, change(row), description="Report", after_within_seconds="").status_code == 302
    row.refresh_from_db()
    assert (row.after, row.after_within_seconds, row.after_late) == (None, 43_200, "skip")


def test_a_value_that_cannot_be_used_is_refused_at_its_field(root: Client) -> None:
    wrong = {
        "after": (9_223_372_036_854_775_807,),
        "after_within_seconds": ("30s", "169h"),
        "after_span": ("week",),
        "after_late": ("later",),
    }
    for field, values in wrong.items():
        for value in values:
            assert list(errors(posted(root, ADD, **{field: value}))) == [field], value


def test_a_circle_is_refused_at_the_field(root: Client) -> None:
    first = SchedulerFactory(description="a")
    second = SchedulerFactory(description="b", after=first)
    said = errors(posted(root, change(first), description="a", after=second.pk))
    assert said["after"][0].startswith("The schedules would wait for each other in a circle: “a”")


def test_a_schedule_of_another_group_cannot_be_chosen(member: Client, secret: Scheduler) -> None:
    assert list(errors(posted(member, ADD, after=secret.pk))) == ["after"]
    assert "Payroll" not in member.get(ADD).content.decode()
    found = member.get(reverse("admin:autocomplete"), {
        "app_label": "scheduling", "model_name": "scheduler", "field_name": "after", "term": "Payroll",
    })  # fmt: skip
    assert found.json()["results"] == []


def test_a_predecessor_of_another_group_is_not_named_and_stays(member: Client, root: Client, secret: Scheduler) -> None:
    row = SchedulerFactory(description="Report", after=secret)
    SchedulerFactory(description="Load")
    assert posted(root, change(row), description="Report", after=Scheduler.objects.get(description="Load").pk)
    assert posted(root, change(row), description="Report", after=secret.pk).status_code == 302
    for address in (overview(row), change(row), f"{ADD}?copy={row.pk}"):
        assert "Payroll" not in member.get(address).content.decode(), address
    assert "a schedule of another group" in member.get(overview(row)).content.decode()
    assert "Only users who see it can change this." in member.get(change(row)).content.decode()
    assert posted(member, change(row), description="new", after="").status_code == 302
    row.refresh_from_db()
    assert (row.description, row.after_id) == ("new", secret.pk)
    history = member.get(reverse("admin:scheduling_scheduler_history", args=[row.pk])).content.decode()
    assert "Payroll" not in history
    assert f"schedule {secret.pk}" in history


def test_what_waits_of_another_group_is_not_counted(member: Client, secret: Scheduler) -> None:
    first = SchedulerFactory()
    Scheduler.objects.filter(pk=secret.pk).update(after=first)
    assert "waits for this one" not in member.get(overview(first)).content.decode()
    deleted = member.get(reverse("admin:scheduling_scheduler_delete", args=[first.pk])).content.decode()
    assert "some schedules wait for it" in deleted
    assert "Payroll" not in deleted


def test_a_user_who_may_only_view_reads_no_name_of_another_group(secret: Scheduler) -> None:
    list(make_groups())
    viewer = UserFactory(username="eve")
    viewer.groups.add(Group.objects.get(name=VIEWER))
    seen = SchedulerFactory(description="Report", after=SchedulerFactory(description="Load"))
    hidden = SchedulerFactory(description="Other", after=secret)
    client = logged_in(viewer)
    assert "“Load” (schedule" in client.get(change(seen)).content.decode()
    page = client.get(change(hidden)).content.decode()
    assert "Payroll" not in page
    assert "a schedule of another group" in page


def test_the_pages_of_an_execution_say_for_what_it_waits(root: Client) -> None:
    row = SchedulerFactory(after=SchedulerFactory())
    run = SchedulerExecutionFactory(
        scheduler=row, blocked=True, reason="Waits for “<Load>” (schedule 1): its run fails."
    )
    page = root.get(reverse("admin:scheduling_schedulerexecution_change", args=[run.pk])).content.decode()
    assert "“&lt;Load&gt;”" in page
    assert why(run, run.wake_at or NOON)[0] == run.reason
    listed = root.get(reverse("admin:scheduling_schedulerexecution_changelist"), {"state": "blocked"}).content.decode()
    assert "blocked" in listed
    assert "“&lt;Load&gt;”" in listed


def test_the_dashboard_says_for_what_the_newest_run_waits(root: Client) -> None:
    row = SchedulerFactory(after=SchedulerFactory())
    SchedulerExecutionFactory(scheduler=row, blocked=True, reason="Waits for “<Load>” (schedule 1).")
    assert (
        "Waits for “&lt;Load&gt;” (schedule 1)."
        in root.get(reverse("admin:scheduling_dashboard_changelist")).content.decode()
    )
