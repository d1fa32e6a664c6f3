"""Tests of the failed inbox grouped by error: counts, number of queries, links to the ungrouped list, and actions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as clock

from scheduling.models import SchedulerExecution
from scheduling.operations.failure_groups import GroupLimits
from tests.admin.conftest import said
from tests.admin.inbox import LIST, confirm, fill, shown_rows, states
from tests.factories import (
    AttemptFactory,
    FailedExecutionFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    WorkerFactory,
)

GROUPED = f"{LIST}?group=error"
A, B, C = "a" * 40, "b" * 40, "c" * 40


def groups(client: Client, address: str = GROUPED) -> list[Any]:
    """Return the groups that the page shows."""
    found: list[Any] = client.get(address).context["groups"].rows
    return found


def press(client: Client, action: str, group: Any) -> Any:
    """Press a group's button and return the confirmation page."""
    data = {"action": action, "select_across": "1", "_selected_action": "all"}
    return client.post(f"{LIST}{group.act}", data)


def target(name: str) -> Any:
    """Return a new schedule whose target is a Worker with this name."""
    return SchedulerFactory(worker=WorkerFactory(name=name))


def test_failures_of_three_causes_are_three_groups(operator: Client) -> None:
    for key, name, count in ((A, "tests.a", 2_500), (B, "tests.b", 1_500), (C, "tests.c", 1_000)):
        fill(count, fingerprint=key, scheduler=target(name), error_class=f"Error{name[-1]}")
    with CaptureQueriesContext(connection) as captured:
        found = groups(operator)
    assert [(group.fingerprint, group.count, group.name) for group in found] == [
        (A, 2_500, "Errora"), (B, 1_500, "Errorb"), (C, 1_000, "Errorc"),
    ]  # fmt: skip
    assert len(captured) <= 22


def test_a_group_shows_its_error_its_dates_and_its_targets(viewer: Client) -> None:
    now = clock.now()
    old = FailedExecutionFactory(fingerprint=A, finished_at=now - timedelta(days=20), error_message="old")
    new = FailedExecutionFactory(
        fingerprint=A, scheduler=target("tests.other"), error_message="<b>order</b> 7\nand more", finished_at=now
    )
    SchedulerExecutionFactory(succeeded=True)
    (group,) = groups(viewer)
    assert (group.count, group.latest) == (2, new.pk)
    assert sorted(group.targets) == ["tests.noop (worker): 1", "tests.other (worker): 1"]
    assert "1 failed in the last 14 days; today 1, at most 1 on one day" in group.trend
    page = viewer.get(GROUPED).content.decode()
    assert "&lt;b&gt;order&lt;/b&gt; 7" in page
    assert "<b>order" not in page
    assert "and more" not in page
    assert (now - timedelta(days=20)).date().isoformat() in group.first
    assert now.date().isoformat() in group.last
    assert "style=" not in page.split('id="changelist-form"')[1].split("</form>")[0]
    assert shown_rows(viewer, group.query[1:]) == {old.pk, new.pk}


def test_a_group_shows_the_release_in_which_it_first_failed(viewer: Client) -> None:
    now = clock.now()
    for hours, releases in ((1, ["r43"]), (3, ["r41", "<b>r42</b>"]), (2, ["r44"])):
        failure = FailedExecutionFactory(fingerprint=A, attempt=len(releases), finished_at=now - timedelta(hours=hours))
        for number, release in enumerate(releases, start=1):
            AttemptFactory(execution=failure, number=number, release=release)
    unknown = FailedExecutionFactory(fingerprint=B, attempt=1)
    AttemptFactory(execution=unknown, number=1)
    assert {group.fingerprint: group.release for group in groups(viewer)} == {A: "<b>r42</b>", B: ""}
    page = viewer.get(GROUPED).content.decode()
    assert page.count("first failed in") == 1
    assert "first failed in &lt;b&gt;r42&lt;/b&gt;" in page


def test_the_grouped_list_keeps_filters_and_search(viewer: Client) -> None:
    FailedExecutionFactory(fingerprint=A, error_class="KeyError", error_message="order 7")
    FailedExecutionFactory(fingerprint=A, error_class="KeyError", error_message="other")
    FailedExecutionFactory(fingerprint=B, error_class="OSError", error_message="order 7")
    page = viewer.get(f"{LIST}?error_class=KeyError&q=order")
    assert page.context["group_query"] == "?error_class=KeyError&group=error&q=order"
    (group,) = groups(viewer, LIST + page.context["group_query"])
    assert (group.fingerprint, group.count) == (A, 1)
    assert group.query == f"?error_class=KeyError&fingerprint={A}&q=order"
    assert len(groups(viewer, f"{LIST}?{urlencode({'group': 'error', 'fingerprint': B})}")) == 1
    assert groups(viewer, f"{GROUPED}&q=nothing") == []


@pytest.mark.parametrize("value", ["", "x", "' OR 1=1 --", "\u202e", "error&group=no"])
def test_hostile_values_in_the_address_match_nothing(viewer: Client, value: str) -> None:
    FailedExecutionFactory(fingerprint=A)
    for name in ("group", "fingerprint"):
        assert viewer.get(LIST, {name: value}).status_code == 200
    assert not shown_rows(viewer, urlencode({"fingerprint": value}))


def test_only_the_largest_groups_are_shown(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GroupLimits, "shown_groups", 2)
    for key in (A, B, C):
        FailedExecutionFactory(fingerprint=key)
    page = viewer.get(GROUPED)
    assert len(page.context["groups"].rows) == 2
    assert "1 smaller groups are not shown" in page.content.decode()


def test_republishing_a_group_changes_only_this_group(operator: Client) -> None:
    first, second = FailedExecutionFactory.create_batch(2, fingerprint=A)
    other = FailedExecutionFactory(fingerprint=B)
    group = groups(operator)[0]
    page = press(operator, "republish_selected", group)
    assert "2 failed runs will be queued again" in page.content.decode()
    assert states(first, second, other) == ["failed"] * 3
    assert said(confirm(operator, page, LIST + group.act)) == ["2 were republished."]
    assert states(first, second, other) == ["queued", "queued", "failed"]
    assert LogEntry.objects.count() == 2


def test_an_action_on_a_group_returns_to_the_list_of_groups(operator: Client) -> None:
    FailedExecutionFactory(fingerprint=A, error_class="KeyError")
    FailedExecutionFactory(fingerprint=B, error_class="KeyError")
    back = f"{LIST}?error_class=KeyError&group=error"
    group = groups(operator, back)[0]
    page = press(operator, "discard_selected", group)
    assert page.context["c"].back == back
    done = confirm(operator, page, LIST + group.act, reason="noise")
    assert done.redirect_chain == [(back, 302)]
    assert len(done.context["groups"].rows) == 1


def test_failures_without_a_fingerprint_form_one_group(operator: Client) -> None:
    row, other = FailedExecutionFactory(fingerprint=""), FailedExecutionFactory(fingerprint=A)
    group = next(found for found in groups(operator) if not found.fingerprint)
    page = press(operator, "discard_selected", group)
    assert said(confirm(operator, page, LIST + group.act, reason="noise")) == ["1 was discarded."]
    assert states(row, other) == ["discarded", "failed"]


def test_a_viewer_has_no_buttons_and_cannot_act(viewer: Client) -> None:
    row = FailedExecutionFactory(fingerprint=A)
    (group,) = groups(viewer)
    assert "republish_selected" not in viewer.get(GROUPED).content.decode()
    press(viewer, "republish_selected", group)
    assert SchedulerExecution.objects.get(pk=row.pk).state == "failed"


def test_only_the_newest_rows_are_counted_and_the_page_says_so(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GroupLimits, "newest_counted", 3)
    old, _middle, *_new = [FailedExecutionFactory(fingerprint=key) for key in (B, A, A, A)]
    page = operator.get(GROUPED)
    ((only),) = page.context["groups"].rows
    assert (only.fingerprint, only.count) == (A, 3)
    text = page.content.decode()
    assert ">3+</a>" in text
    assert "Counted in the newest 3" in text
    FailedExecutionFactory(fingerprint=B)
    first, second = groups(operator)
    assert (first.count, second.count) == (2, 1)
    # The button of a group acts on all rows of the group, also on rows that the page has not counted.
    assert shown_rows(operator, second.query[1:]) == {old.pk, second.latest}
