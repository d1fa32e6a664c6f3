"""An undo gives a schedule the values of before, as a new revision, or says why it cannot."""

from __future__ import annotations

import os
import random
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.utils import timezone as clock

from scheduling.core.revisions import changed_keys
from scheduling.execution.claim import claim_due
from scheduling.execution.revision_state import digest_for
from scheduling.models import Scheduler, ScheduleRevision
from scheduling.operations import schedules
from scheduling.operations.actor import Actor
from scheduling.operations.next_runs import next_runs
from scheduling.operations.refused import Code, Refused
from scheduling.operations.revisions import present_snapshot, restore_of, reverse, revisions_of, undo_of
from tests.factories import GroupFactory, SchedulerFactory, UserFactory, WorkerFactory
from tests.hostile.fuzz import choose_seed

pytestmark = pytest.mark.django_db

EDITS = int(os.environ.get("TEST_UNDO_EDITS", "20"))


@pytest.fixture
def actor() -> Actor:
    return Actor(UserFactory(username="anna", superuser=True))


def refused(actor: Actor, pk: int, number: int) -> Refused:
    with pytest.raises(Refused) as found:
        undo_of(actor, pk, number)
    return found.value


def random_edit(generator: random.Random) -> dict[str, Any]:
    """Values that fit together, some of which a client changes."""
    minute, hour, day = generator.randrange(60), generator.randrange(24), generator.randrange(7)
    when = generator.choice([
        {"schedule": f"{minute} {hour} * * *", "date_time": None},
        {"schedule": f"*/{generator.randint(1, 30)} * * * {day}", "date_time": None},
        {"schedule": "", "date_time": (clock.now() + timedelta(hours=hour + 1)).isoformat()},
    ])  # fmt: skip
    others = {
        "timezone": generator.choice(["", "Europe/Madrid", "America/New_York", "Australia/Lord_Howe"]),
        "status": generator.random() < 0.7,
        "worker": generator.choice(["tests.noop", "tests.mark"]),
        "params": generator.choice([{}, {"seconds": hour}, {"seconds": hour, "exit_code": 0}]),
        "overlap": generator.choice(["allow", "skip"]),
        "description": generator.choice(["", "words", "<b>"]),
        "queue": generator.choice(["", "mail"]),
        "time_limit": generator.choice([None, 0, 5]),
        "keep_count": generator.choice([None, 3]),
        "retry_jitter": generator.choice([None, True, False]),
    }
    chosen = generator.sample(sorted(others), generator.randint(0, 4))
    values = {name: others[name] for name in chosen} | (when if generator.random() < 0.7 or not chosen else {})
    if values.get("worker") == "tests.noop":
        values["params"] = {}
    return values


def test_the_undo_of_random_edits_gives_the_same_next_runs(actor: Actor) -> None:
    for name in ("tests.noop", "tests.mark"):
        WorkerFactory(name=name)
    generator = random.Random(choose_seed())
    row = schedules.make(actor, {"worker": "tests.mark", "schedule": "0 8 * * *", "params": {"seconds": 1}})
    done, now = 0, clock.now()
    while done < EDITS:
        before, runs = present_snapshot(row.pk), _runs(row.pk, now)
        values = random_edit(generator)
        try:
            schedules.change(actor, row.pk, values)
        except Refused:
            continue
        number = Scheduler.objects.get(pk=row.pk).revision or 0
        found = ScheduleRevision.objects.get(schedule=row.pk, number=number)
        if found.undoes is not None or found.snapshot == before:
            continue
        done += 1
        reverse(actor, undo_of(actor, row.pk, number), "by a test")
        after = present_snapshot(row.pk)
        left = set(changed_keys(before, after, digest_for(row.pk)))
        assert left <= {"pause_reason"}, (values, before, after)
        assert _runs(row.pk, now) == runs, values
        newest = ScheduleRevision.objects.of(row.pk).first()
        assert newest is not None
        assert (newest.undoes, newest.author, newest.reason) == (number, "anna", "by a test")
        if generator.random() < 0.5:  # go on from another state
            schedules.change(actor, row.pk, {"description": f"{done}"})


def _runs(pk: int, now: Any) -> Any:
    row = Scheduler.objects.get(pk=pk)
    return row.status, row.next_run_at if row.status else None, next_runs(row, 20, now)


@pytest.mark.any_database
def test_a_later_change_of_the_same_value_refuses_the_undo(actor: Actor) -> None:
    row = SchedulerFactory(schedule="0 8 * * *")
    schedules.change(actor, row.pk, {"schedule": "0 9 * * *", "time_limit": 5})
    schedules.change(actor, row.pk, {"schedule": "0 10 * * *"})
    schedules.change(actor, row.pk, {"time_limit": 7})
    found = refused(actor, row.pk, 2)
    assert (found.code, "Revision 4 has changed “time_limit” again" in found.said) == (Code.CONFLICT, True)
    reverse(actor, undo_of(actor, row.pk, 4))
    assert "Revision 3 has changed “schedule” again" in refused(actor, row.pk, 2).said
    reverse(actor, undo_of(actor, row.pk, 3))
    reverse(actor, undo_of(actor, row.pk, 2))
    stored = Scheduler.objects.get(pk=row.pk)
    assert (stored.schedule, stored.time_limit) == ("0 8 * * *", None)
    assert refused(actor, row.pk, 2).code == Code.CONFLICT  # it is undone
    reverse(actor, restore_of(actor, row.pk, 3))
    assert Scheduler.objects.get(pk=row.pk).schedule == "0 10 * * *"


@pytest.mark.any_database
def test_edits_of_two_params_do_not_conflict(actor: Actor) -> None:
    WorkerFactory(name="tests.mark")
    row = SchedulerFactory(handler="tests.mark", params={"seconds": 1})
    schedules.change(actor, row.pk, {"params": {"seconds": 2}})
    schedules.change(actor, row.pk, {"params": {"seconds": 2, "directory": "x"}})
    reverse(actor, undo_of(actor, row.pk, 2))
    assert Scheduler.objects.get(pk=row.pk).params == {"seconds": 1, "directory": "x"}


@pytest.mark.any_database
def test_a_secret_keeps_its_present_value(actor: Actor) -> None:
    row = SchedulerFactory(handler="tests.keep", params={"token": "first"})
    schedules.change(actor, row.pk, {"params": {"token": "second"}, "time_limit": 5})
    found = undo_of(actor, row.pk, 2)
    assert found.unknown == ("params.token",)
    reverse(actor, found)
    stored = Scheduler.objects.get(pk=row.pk)
    assert (stored.params, stored.time_limit) == ({"token": "second"}, None)
    schedules.change(actor, row.pk, {"params": {"token": "third"}})
    assert "only values that no revision holds" in refused(actor, row.pk, 4).said
    reverse(actor, restore_of(actor, row.pk, 2))
    stored = Scheduler.objects.get(pk=row.pk)
    assert (stored.params, stored.time_limit) == ({"token": "third"}, 5)


@pytest.mark.any_database
def test_a_target_that_is_gone_refuses_the_undo(actor: Actor) -> None:
    gone = WorkerFactory(name="shop.gone")
    row = SchedulerFactory(worker=gone)
    schedules.change(actor, row.pk, {"worker": "tests.noop"})
    gone.delete()
    found = refused(actor, row.pk, 2)
    assert (found.code, f"with the id {gone.pk or ''}" in found.said or "is gone" in found.said) == (Code.INVALID, True)
    assert len(revisions_of(actor, row.pk)) == 2


@pytest.mark.any_database
def test_a_date_that_has_passed_refuses_the_undo(actor: Actor) -> None:
    row = SchedulerFactory(once=True)
    schedules.change(actor, row.pk, {"schedule": "0 8 * * *", "date_time": None})
    passed = (clock.now() - timedelta(days=1)).isoformat()
    edits = ScheduleRevision.objects.get(schedule=row.pk, number=2).edits
    assert row.date_time is not None
    ScheduleRevision.objects.filter(schedule=row.pk, number=2).update(
        edits=edits.replace(row.date_time.isoformat(), passed)
    )
    assert "passed" in refused(actor, row.pk, 2).said


@pytest.fixture
def spent(actor: Actor) -> Scheduler:
    """An active schedule that an edit has given one date (revision 2), whose run has paused it."""
    row = SchedulerFactory(schedule="0 * * * *")
    due = clock.now() + timedelta(minutes=5)
    schedules.change(actor, row.pk, {"schedule": "", "date_time": due.isoformat()})
    assert len(claim_due(due + timedelta(seconds=1), embedded=True).claimed) == 1
    row.refresh_from_db()
    assert not row.status
    return row


@pytest.mark.any_database
@pytest.mark.parametrize(("find", "number"), [(undo_of, 2), (restore_of, 1)])
def test_the_pause_by_a_date_goes_with_the_date(actor: Actor, spent: Scheduler, find: Any, number: int) -> None:
    found = find(actor, spent.pk, number)
    assert found.edits["status"] == {"old": False, "new": True}
    reverse(actor, found)
    spent.refresh_from_db()
    assert (spent.status, spent.schedule, spent.date_time) == (True, "0 * * * *", None)
    assert spent.next_run_at is not None
    first, newest = (revisions_of(actor, spent.pk).get(number=number) for number in (1, 3))
    assert newest.snapshot == first.snapshot
    assert newest.changes.keys() == {"schedule", "date_time"}  # revision 2 has it active, too
    with pytest.raises(Refused, match="is as revision 1 has left it"):
        restore_of(actor, spent.pk, 1)


@pytest.mark.any_database
def test_the_pause_by_a_date_stays_with_the_date(actor: Actor, spent: Scheduler) -> None:
    schedules.change(actor, spent.pk, {"description": "words"})
    with pytest.raises(Refused, match="is as revision 3 has left it"):
        restore_of(actor, spent.pk, 3)
    for found in (restore_of(actor, spent.pk, 2), undo_of(actor, spent.pk, 3)):
        assert found.edits.keys() == {"description"}
    reverse(actor, undo_of(actor, spent.pk, 3))
    spent.refresh_from_db()
    assert not spent.status


@pytest.mark.any_database
@pytest.mark.parametrize(("find", "number"), [(undo_of, 2), (restore_of, 1)])
def test_what_was_paused_before_its_date_is_paused_again(actor: Actor, find: Any, number: int) -> None:
    row, due = SchedulerFactory(schedule="0 * * * *", status=False), clock.now() + timedelta(minutes=5)
    schedules.change(actor, row.pk, {"schedule": "", "date_time": due.isoformat(), "status": True})
    assert len(claim_due(due + timedelta(seconds=1), embedded=True).claimed) == 1
    found = find(actor, row.pk, number)
    assert found.edits.keys() == {"schedule", "date_time"}
    reverse(actor, found)
    row.refresh_from_db()
    assert (row.status, row.schedule) == (False, "0 * * * *")


@pytest.mark.any_database
def test_the_first_revision_cannot_be_undone_and_an_unknown_one_is_not_found(actor: Actor) -> None:
    row = SchedulerFactory()
    assert refused(actor, row.pk, 1).code == Code.CONFLICT
    assert refused(actor, row.pk, 2).code == Code.NOT_FOUND
    assert refused(actor, row.pk + 1_000, 1).code == Code.NOT_FOUND


@pytest.mark.any_database
def test_groups_and_permissions_hold(actor: Actor) -> None:
    own, other = GroupFactory(), GroupFactory()
    row = SchedulerFactory(group=other)
    schedules.change(actor, row.pk, {"time_limit": 5})
    user = UserFactory(permissions=["scheduling.view_scheduler", "scheduling.change_scheduler"])
    user.groups.add(own)
    for call in (undo_of, restore_of):
        with pytest.raises(Refused) as found:
            call(Actor(user), row.pk, 2)
        assert found.value.code == Code.NOT_FOUND
    for act in (Scheduler.objects.filter(pk=row.pk).delete, lambda: None):
        with pytest.raises(Refused) as found:
            revisions_of(Actor(_fresh(user)), row.pk)
        assert found.value.code == Code.NOT_FOUND
        act()
    assert revisions_of(actor, row.pk).count() == 3
    viewer = UserFactory(permissions=["scheduling.view_scheduler"])
    seen = SchedulerFactory(time_limit=1)
    schedules.change(actor, seen.pk, {"time_limit": 5})
    with pytest.raises(Refused) as found:
        undo_of(Actor(viewer), seen.pk, 2)
    assert found.value.code == Code.FORBIDDEN
    assert revisions_of(Actor(viewer), seen.pk).count() == 2
    # A group that the user is not a member of does not come back.
    moved = SchedulerFactory(group=own)
    schedules.change(actor, moved.pk, {"group": Group.objects.get(pk=other.pk).name})
    schedules.change(actor, moved.pk, {"group": own.name})
    with pytest.raises(Refused) as found:
        undo_of(Actor(_fresh(user)), moved.pk, 3)
    assert found.value.code == Code.INVALID


def _fresh(user: Any) -> Any:
    """The user without what a request has looked up."""
    return type(user).objects.get(pk=user.pk)
