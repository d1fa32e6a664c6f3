"""The page of a run that was called in a batch: how many runs, which one led, and what the batch has printed."""

from __future__ import annotations

from typing import Any

import pytest
from bs4 import BeautifulSoup
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.test import Client
from django.urls import reverse

from scheduling.models import Attempt, SchedulerExecution, Worker
from tests.admin.conftest import VIEW, logged_in
from tests.admin.pages import page_of, text_in
from tests.factories import (
    AttemptFactory,
    GroupFactory,
    OutputFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    UserFactory,
    WorkerFactory,
)

LINE = "2026-03-10T12:00:00.000Z INFO the batch has printed this\n"


def batch_of(client: Client, execution: SchedulerExecution, query: str = "") -> str:
    """The text of the part about the batch; empty if the page has none."""
    response = client.get(page_of(execution) + query)
    assert response.status_code == 200
    found = BeautifulSoup(response.content, "html.parser").select_one("#batch")
    return found.get_text(" ", strip=True) if found is not None else ""


def member(leader: SchedulerExecution, **columns: Any) -> SchedulerExecution:
    """A run that was called in a batch of two."""
    execution = SchedulerExecutionFactory(succeeded=True, **columns)
    link = {"batch_leader": leader.pk, "batch_attempt": leader.attempt, "batch_size": 2}
    AttemptFactory(execution=execution, number=execution.attempt, outcome="succeeded", **link)
    return execution


def leader_of(group: Group | None = None) -> SchedulerExecution:
    """A run that has led a batch of two."""
    leader = SchedulerExecutionFactory(succeeded=True, group=group)
    link = {"batch_leader": leader.pk, "batch_attempt": leader.attempt, "batch_size": 2}
    AttemptFactory(execution=leader, number=leader.attempt, outcome="succeeded", **link)
    OutputFactory(execution=leader, attempt=leader.attempt, text=LINE)
    return leader


def test_the_page_of_a_run_links_to_the_leader_and_shows_the_output_of_the_batch(viewer: Client) -> None:
    leader = leader_of()
    OutputFactory(execution=leader, attempt=leader.attempt + 1, text=LINE.replace("batch", "later attempt"))
    execution = member(leader)
    text = batch_of(viewer, execution)
    assert f"in a batch of 2 runs, which execution {leader.pk} led" in text
    assert "the batch has printed this" in text
    assert "later attempt" not in text
    assert page_of(leader).encode() in viewer.get(page_of(execution)).content
    assert batch_of(viewer, execution, "?attempt=7") == ""
    page = text_in(viewer.get(page_of(execution)))
    assert "No output of its own: that of its batch is below." in page
    assert page.index("Batch It was called") < page.index("Timeline")


def test_the_page_of_the_leader_says_so_and_has_the_output_once(viewer: Client) -> None:
    leader = leader_of()
    assert batch_of(viewer, leader) == "Batch It has led a batch of 2 runs. Its output is that of all of them."
    assert viewer.get(page_of(leader)).content.count(b"the batch has printed this") == 1


def test_the_page_of_the_leader_links_to_the_others_failures_first(viewer: Client) -> None:
    leader = leader_of()
    first, second = member(leader), member(leader)
    Attempt.objects.filter(execution=second).update(outcome="failed")
    AttemptFactory(number=leader.attempt)  # of no batch
    member(leader_of())
    words = f"The other runs of the batch: execution {second.pk} failed execution {first.pk} succeeded"
    assert batch_of(viewer, leader).endswith(words)
    assert "other runs" not in batch_of(viewer, first)
    for _ in range(20):
        member(leader)
    assert batch_of(viewer, leader).endswith("succeeded 2 more")


def test_an_attempt_links_to_the_runs_of_its_own_batch(viewer: Client) -> None:
    leader = leader_of()
    first = member(leader)
    later = member(leader)
    Attempt.objects.filter(execution=later).update(batch_attempt=leader.attempt + 1)
    text = batch_of(viewer, leader, f"?attempt={leader.attempt}")
    assert f"execution {first.pk}" in text
    assert f"execution {later.pk}" not in text


def test_the_page_of_the_leader_links_to_no_run_of_another_group(db: None) -> None:
    own, other = GroupFactory(), GroupFactory()
    user = UserFactory(permissions=VIEW)
    user.groups.add(own)
    leader = leader_of(own)
    hidden, seen = member(leader, group=other), member(leader, group=own)
    text = batch_of(logged_in(user), leader)
    assert f"execution {seen.pk}" in text
    assert f"execution {hidden.pk}" not in text


def test_the_page_of_another_run_has_no_such_part(viewer: Client) -> None:
    assert batch_of(viewer, SchedulerExecutionFactory(running=True)) == ""
    assert batch_of(viewer, AttemptFactory().execution) == ""


def test_a_leader_of_another_group_is_neither_named_nor_shown(db: None) -> None:
    """A consumer gathers runs of one group only. Here, plain SQL has written the leader of another one."""
    own, other = GroupFactory(), GroupFactory()
    user = UserFactory(permissions=VIEW)
    user.groups.add(own)
    leader = leader_of(other)
    for execution in (member(leader, group=own), member(leader)):
        client = logged_in(user)
        assert batch_of(client, execution) == "Batch It was called in a batch of 2 runs."
        assert page_of(leader).encode() not in client.get(page_of(execution)).content
    both = UserFactory(permissions=VIEW)
    both.groups.add(own, other)
    assert "printed this" not in batch_of(logged_in(both), member(leader))
    assert "printed this" in batch_of(logged_in(both), member(leader, group=other))


def test_a_leader_that_is_deleted_is_not_linked(viewer: Client) -> None:
    leader = leader_of()
    execution = member(leader)
    leader.delete()
    assert batch_of(viewer, execution) == "Batch It was called in a batch of 2 runs."


@pytest.mark.parametrize("value", [-1, 0, None, 10**12])
def test_other_values_that_plain_sql_has_written_do_no_harm(viewer: Client, value: int | None) -> None:
    execution = member(leader_of())
    Attempt.objects.filter(execution=execution).update(batch_leader=value if value is None or value > 0 else 0)
    assert "printed this" not in batch_of(viewer, execution)


def test_while_a_batch_goes_on_the_page_shows_its_output(viewer: Client) -> None:
    worker = WorkerFactory(name="tests.batch")
    common = {"running": True, "consumer": "host-1-aaaa", "pid": 77, "target_id": worker.pk, "target_name": worker.name}
    leader, execution = (SchedulerExecutionFactory(**common) for _ in range(2))
    OutputFactory(execution=leader, attempt=leader.attempt, text=LINE)
    text = batch_of(viewer, execution)
    assert f"It is called in a batch that execution {leader.pk} leads." in text
    assert "the batch has printed this" in text
    assert batch_of(viewer, leader) == ""
    gathers = SchedulerExecutionFactory(**{**common, "pid": None})
    assert batch_of(viewer, gathers) == ""


def test_the_pages_of_the_worker_and_its_schedule_say_how_many_runs_a_call_gets(admin_client: Client) -> None:
    row = SchedulerFactory(handler="tests.batch_nothing")
    for address in (
        reverse("admin:scheduling_worker_change", args=[row.worker_id]),
        reverse("admin:scheduling_scheduler_change", args=[row.pk]),
    ):
        assert "Up to 100 runs in one call. A call waits 1 s" in admin_client.get(address).content.decode()
    usual = reverse("admin:scheduling_worker_change", args=[Worker.objects.get(name="tests.noop").pk])
    assert "runs in one call" not in admin_client.get(usual).content.decode()


def test_a_service_with_a_batch_handler_is_refused_by_the_form_and_by_save(admin_client: Client) -> None:
    row = SchedulerFactory(handler="tests.batch_nothing")
    row.stay_alive = True
    with pytest.raises(ValidationError, match="cannot be a service"):
        row.save()
    address = reverse("admin:scheduling_scheduler_add")
    worker = Worker.objects.get(name="tests.batch_nothing")
    posted = {"worker": worker.pk, "schedule": "* * * * *", "params": "{}", "stay_alive": "on", "overlap": "allow"}
    form = admin_client.post(address, posted).context["adminform"].form
    assert "cannot be a service" in str(form.errors["stay_alive"])
    SchedulerFactory(handler="tests.noop", stay_alive=True)
