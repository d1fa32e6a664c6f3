"""Failures are selected, counted, and then republished or discarded."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.models import FailedExecution, SchedulerExecution
from scheduling.operations import failures
from scheduling.operations.actor import Actor
from scheduling.operations.batches import RequestLimits
from scheduling.operations.failure_selection import Selection
from tests.factories import FailedExecutionFactory, GroupFactory, UserFactory
from tests.operations.refusals import refused

pytestmark = pytest.mark.django_db


@pytest.fixture
def actor(db: None) -> Actor:
    return Actor(UserFactory(superuser=True))


def left() -> int:
    return FailedExecution.objects.filter(state="failed").count()


@pytest.mark.parametrize("count", [None, 0, 2])
@pytest.mark.parametrize("act", ["republish", "discard"])
def test_a_selection_by_conditions_states_its_count(actor: Actor, act: str, count: int | None) -> None:
    FailedExecutionFactory.create_batch(3)
    more: dict[str, Any] = {} if act == "republish" else {"reason": "x"}
    wanted = Selection(all=True, count=count)
    found = refused(getattr(failures, act), actor, wanted, **more)
    assert (found.code, found.extra["count"], left()) == ("COUNT_DIFFERS", 3, 3)
    assert getattr(failures, act)(actor, wanted, dry_run=True, **more).matching == 3
    assert left() == 3
    assert len(getattr(failures, act)(actor, Selection(all=True, count=3), **more).done) == 3
    assert left() == 0


def test_what_failed_after_the_dry_run_is_left_out(actor: Actor) -> None:
    FailedExecutionFactory.create_batch(2)
    counted = failures.republish(actor, Selection(all=True), dry_run=True)
    late = FailedExecutionFactory(finished_at=clock.now() + timedelta(seconds=1))
    done = failures.republish(actor, Selection(all=True, count=2, failed_before=counted.failed_before))
    assert (len(done.done), done.left) == (2, 0)
    assert SchedulerExecution.objects.get(pk=late.pk).state == "failed"


def test_an_empty_selection_selects_nothing(actor: Actor) -> None:
    FailedExecutionFactory()
    assert refused(failures.republish, actor, Selection(count=1)).problems[0].field == "ids"
    assert refused(failures.republish, actor, Selection(error_class="\x00", count=1)).problems[0].field == "error_class"
    assert left() == 1


def test_a_discard_needs_a_reason(actor: Actor) -> None:
    row = FailedExecutionFactory()
    assert refused(failures.discard, actor, Selection(ids=[row.pk]), " \n").problems[0].field == "reason"
    failures.discard(actor, Selection(ids=[row.pk]), "the shop is closed")
    assert "the shop is closed" in SchedulerExecution.objects.get(pk=row.pk).reason


def test_rows_of_other_groups_are_not_counted_and_not_touched() -> None:
    permissions = ["view_failedexecution", "republish_failedexecution"]
    limited = Actor(UserFactory(permissions=[f"scheduling.{name}" for name in permissions]))
    seen, hidden = FailedExecutionFactory(), FailedExecutionFactory(group=GroupFactory())
    assert failures.republish(limited, Selection(all=True), dry_run=True).matching == 1
    assert failures.republish(limited, Selection(ids=[seen.pk, hidden.pk])).done == (seen.pk,)
    assert SchedulerExecution.objects.get(pk=hidden.pk).state == "failed"


@pytest.mark.parametrize("by_ids", [True, False])
def test_requests_that_go_on_share_one_spread(actor: Actor, monkeypatch: pytest.MonkeyPatch, by_ids: bool) -> None:
    monkeypatch.setattr(RequestLimits, "chunk_rows", 2)
    monkeypatch.setattr(RequestLimits, "seconds", 0.0)
    rows = FailedExecutionFactory.create_batch(4)
    wanted = Selection(ids=[row.pk for row in rows]) if by_ids else Selection(all=True, count=4)
    before = clock.now()
    first = failures.republish(actor, wanted, minutes=8)
    again = wanted.model_copy(update={"failed_before": first.failed_before})
    assert failures.republish(actor, again, minutes=8).left == 0
    spent = clock.now() - before
    for place, row in enumerate(rows):
        row.refresh_from_db()
        planned = before + place * timedelta(minutes=2)
        assert row.wake_at is not None
        assert planned <= row.wake_at <= planned + spent, place


def test_a_canary_goes_first(actor: Actor) -> None:
    rows = FailedExecutionFactory.create_batch(3)
    done = failures.republish(actor, Selection(all=True, count=3), canary=True, minutes=5)
    assert done.done == (rows[0].pk,)
    assert done.replay is not None
    assert left() == 2
