"""The pages of limits: what runs and waits for each key, and limits that users lower with a reason."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from scheduling.models import LoweredLimit
from tests.admin.conftest import logged_in, said
from tests.admin.pages import text_in
from tests.factories import (
    GroupFactory,
    LimitKeyFactory,
    LimitPlaceFactory,
    LoweredLimitFactory,
    SchedulerFactory,
    UserFactory,
    WorkerFactory,
)

pytestmark = pytest.mark.django_db

KEYS = reverse("admin:scheduling_limitkey_changelist")
LOWERED = reverse("admin:scheduling_loweredlimit_changelist")
ADD = reverse("admin:scheduling_loweredlimit_add")
TWO = "worker:tests.two_at_once"


def lower(client: Client, **values: Any) -> Any:
    return client.post(
        ADD, {"handler": TWO, "at_once": "1", "starts": "", "reason": "slow\ndepot", **values}, follow=True
    )


def test_the_list_says_how_many_runs_of_each_key_run_and_wait(viewer: Client) -> None:
    limit = LimitKeyFactory(key="Berlin")
    LimitPlaceFactory(limit=limit, state="held")
    LimitPlaceFactory.create_batch(2, limit=limit)
    text = text_in(viewer.get(KEYS))
    assert "worker tests.one_of_each_key Berlin 1 2 1 at once for each key" in text
    assert "Berlin" in text_in(viewer.get(reverse("admin:scheduling_limitkey_change", args=[limit.pk])))


@pytest.mark.parametrize(
    ("at_once", "words"),
    [(1, "1 at once for all runs together (lowered; in the code: 2 at once)"), (2, "2 at once for all runs together")],
)
def test_the_list_says_the_limit_that_holds(viewer: Client, at_once: int, words: str) -> None:
    limit = LimitKeyFactory(name="tests.two_at_once", key="")
    LoweredLimitFactory(name="tests.two_at_once", at_once=at_once)
    for page in (KEYS, reverse("admin:scheduling_limitkey_change", args=[limit.pk])):
        text = text_in(viewer.get(page))
        assert words in text
        assert ("lowered; in" in text) == (at_once == 1)


def test_a_user_lowers_a_limit_with_a_reason_and_ends_it(operator: Client) -> None:
    lower(operator)
    row = LoweredLimit.objects.get()
    assert (row.type, row.name, row.at_once, row.starts) == ("worker", "tests.two_at_once", 1, None)
    assert (row.reason, row.lowered_by) == ("slow depot", "operator")
    assert "slow depot" in text_in(operator.get(LOWERED))
    assert "worker tests.two_at_once" in LogEntry.objects.latest("pk").change_message
    page = reverse("admin:scheduling_loweredlimit_change", args=[row.pk])
    assert "2 at once for all runs together" in text_in(operator.get(page))
    operator.post(reverse("admin:scheduling_loweredlimit_delete", args=[row.pk]), {"post": "yes"})
    assert not LoweredLimit.objects.exists()


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"at_once": "0"}, "greater than or equal to 1"),
        ({"at_once": "-3"}, "greater than or equal to 0"),
        ({"at_once": ""}, "Give a number of runs at once, or of starts."),
        ({"reason": " "}, "This field is required."),
        ({"handler": "worker:tests.noop"}, "Select a valid choice"),
        ({"handler": ""}, "This field is required."),
    ],
)
def test_what_cannot_be_is_a_sentence(operator: Client, values: dict[str, str], problem: str) -> None:
    assert problem in text_in(lower(operator, **values))
    assert not LoweredLimit.objects.exists()


def test_a_handler_has_one_lowered_limit(operator: Client) -> None:
    LoweredLimitFactory(name="tests.two_at_once")
    assert "lowered already" in text_in(lower(operator))


def test_who_may(viewer: Client) -> None:
    row = LoweredLimitFactory()
    assert lower(viewer).status_code == 403
    assert (
        viewer.post(reverse("admin:scheduling_loweredlimit_delete", args=[row.pk]), {"post": "yes"}).status_code == 403
    )
    permissions = ["scheduling.view_limitkey", "scheduling.view_loweredlimit", "scheduling.pause_work"]
    SchedulerFactory(group=GroupFactory())
    client = logged_in(UserFactory(permissions=permissions))
    assert client.get(KEYS).status_code == 403, "keys come from the runs of all groups"
    assert client.get(ADD).status_code == 403
    assert said(lower(logged_in(UserFactory(permissions=[*permissions, "scheduling.view_all_groups"]))))


def pages() -> list[str]:
    """The addresses of a handler and of its schedule."""
    schedule = SchedulerFactory(handler="tests.one_of_each_key", params={"directory": "notes"})
    return [
        reverse("admin:scheduling_worker_change", args=[schedule.worker.pk]),
        reverse("admin:scheduling_scheduler_change", args=[schedule.pk]),
    ]


def test_the_pages_of_a_handler_and_its_schedule_say_the_limit(viewer: Client) -> None:
    for page in pages():
        text = text_in(viewer.get(page))
        assert "Limit of its runs: 1 at once for each key." in text
        assert "wait for a place" not in text
    LimitPlaceFactory.create_batch(3)
    LoweredLimitFactory(name="tests.two_at_once", at_once=1, reason="slow depot", lowered_by="ada")
    for page in pages():
        assert "Runs that wait for a place: 3." in text_in(viewer.get(page))
    two = reverse("admin:scheduling_worker_change", args=[WorkerFactory(name="tests.two_at_once").pk])
    assert "2 at once for all runs together. Lowered by ada to 1 at once: slow depot" in text_in(viewer.get(two))
    other = reverse("admin:scheduling_worker_change", args=[WorkerFactory(name="tests.noop").pk])
    assert "Limit of its runs" not in text_in(viewer.get(other))


def test_a_user_of_a_group_does_not_see_how_many_runs_of_all_groups_wait() -> None:
    LimitPlaceFactory.create_batch(3)
    group = GroupFactory()
    user = UserFactory(permissions=["scheduling.view_scheduler", "scheduling.view_limitkey"])
    user.groups.add(group)
    client = logged_in(user)
    schedule = SchedulerFactory(handler="tests.one_of_each_key", params={"directory": "notes"}, group=group)
    text = text_in(client.get(reverse("admin:scheduling_scheduler_change", args=[schedule.pk])))
    assert "Limit of its runs: 1 at once for each key." in text
    assert "wait for a place" not in text
