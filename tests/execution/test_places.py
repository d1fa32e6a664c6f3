"""Places of limited handlers: given in the order of arrival, for each key apart, and never more than there are."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone as clock

from scheduling.broker import get_broker
from scheduling.core.lifecycle import CLAIM_GRACE
from scheduling.core.run_limit import Limit
from scheduling.execution.given_places import give_places, held_places, wake
from scheduling.execution.lowered_limits import LoweredLimits
from scheduling.execution.passed_places import pass_places, take_passed
from scheduling.execution.place_rows import Place, remove_places
from scheduling.execution.places import Limited, LimitedAttempt, take_places
from scheduling.models import LimitKey, LimitPlace, LoweredLimit, SchedulerExecution
from scheduling.producer.freed_places import SETTLED, give_freed_places
from tests.factories import LimitKeyFactory, LimitPlaceFactory, LoweredLimitFactory, SchedulerExecutionFactory
from tests.support import at_once

pytestmark = pytest.mark.django_db

ONE = Limit(at_once=1, key="region")
NAME = "tests.one_of_each_key"


def limited(key: str = "eu", rules: Limit = ONE) -> Limited:
    return Limited("worker", NAME, key, rules)


def waiting_run(**columns: Any) -> SchedulerExecution:
    now = clock.now()
    values = {"deferred_at": now, "reason": "It waits.", "wake_at": now + timedelta(minutes=50)} | columns
    row: SchedulerExecution = SchedulerExecutionFactory(**values)
    return row


def place_of(row: SchedulerExecution) -> Place | None:
    found = LimitPlace.objects.filter(pk=row.pk).values_list("limit", "state", "attempt").first()
    return None if found is None else Place(*found)


def take(
    row: SchedulerExecution, key: str = "eu", rules: Limit = ONE, now: datetime | None = None, attempt: int = 1
) -> str:
    asked = LimitedAttempt(row.pk, attempt, limited(key, rules), place_of(row))
    return take_places([asked], now or clock.now()).reasons[row.pk]


def free(*rows: SchedulerExecution) -> None:
    """Free the places of first attempts."""
    remove_places((row.pk, 1) for row in rows)


def state_of(row: SchedulerExecution) -> str:
    return str(LimitPlace.objects.get(pk=row.pk).state)


def test_the_first_run_of_a_key_has_the_place_and_the_others_wait_in_their_order() -> None:
    first, second, third, other = (waiting_run() for _ in range(4))
    assert take(first) == ""
    assert take(second).startswith("It waits for a place: 1 of 1 runs")
    assert take(third) != ""
    assert take(other, "us") == "", "a full key blocks no other"
    limit = LimitPlace.objects.get(pk=first.pk).limit_id
    assert give_places({limit: ONE}, clock.now()) == []
    free(first)
    assert give_places({limit: ONE}, clock.now()) == [second.pk]
    assert state_of(second) == "granted"
    second.refresh_from_db()
    assert second.deferred_at is None, "it is offered to the consumers"
    assert take(third) != "", "the place was given"
    assert take(second) == ""
    assert (state_of(second), LimitPlace.objects.get(pk=second.pk).attempt) == ("held", 1)


def test_a_new_run_does_not_overtake_one_that_waits() -> None:
    first, second, new = (waiting_run() for _ in range(3))
    take(first)
    take(second)
    free(first)
    assert "older runs" in take(new)
    assert take(second) == "", "the first one in line may take the place itself"


def test_runs_of_one_turn_are_counted_together() -> None:
    rows = [waiting_run() for _ in range(5)]
    rules = Limit(at_once=2, starts=3, key="region")
    keys = ["eu", "eu", "eu", "us", "EU"]
    attempts = [LimitedAttempt(row.pk, 1, limited(key, rules)) for row, key in zip(rows, keys, strict=True)]
    taken = take_places(attempts, clock.now())
    assert [bool(taken.reasons[row.pk]) for row in rows] == [False, False, True, False, False]
    assert taken.locked == {}
    assert {key.key: len(key.started) for key in LimitKey.objects.all()} == {"eu": 2, "us": 1, "EU": 1}


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite locks the whole file")
def test_a_run_whose_key_another_process_has_locked_waits_and_is_named() -> None:
    """Its consumer looks for a free place right after the transaction."""
    first, second = waiting_run(), waiting_run()
    take(first)
    free(first)
    with transaction.atomic():
        (key,) = LimitKey.objects.select_for_update()
        (taken,) = at_once([lambda: take_places([LimitedAttempt(second.pk, 1, limited())], clock.now())])
    assert taken.reasons[second.pk] != ""
    assert taken.locked == {key.pk: limited()}
    assert give_places({key.pk: ONE}, clock.now()) == [second.pk]


def test_a_place_that_was_given_since_the_row_was_read_is_taken() -> None:
    first, second = waiting_run(), waiting_run()
    take(first)
    take(second)
    read = place_of(second)
    free(first)
    limit = LimitKey.objects.get()
    give_places({limit.pk: ONE}, clock.now())
    taken = take_places([LimitedAttempt(second.pk, 1, limited(), read)], clock.now())
    assert (taken.reasons, taken.limits) == ({second.pk: ""}, {second.pk: limit.pk})


def test_two_messages_of_one_run_take_one_place() -> None:
    row = waiting_run()
    taken = take_places([LimitedAttempt(row.pk, 1, limited()), LimitedAttempt(row.pk, 1, limited())], clock.now())
    assert taken.reasons == {row.pk: ""}
    assert state_of(row) == "held"


def test_a_start_that_asks_twice_keeps_its_place() -> None:
    """The start asks again if the message says something else than its row, and others wait by then."""
    first, second = waiting_run(), waiting_run()
    assert take(first) == ""
    take(second)
    assert take(first) == ""
    assert take(first, attempt=2) != "", "the next attempt queues up like all others"


def test_an_attempt_that_has_ended_takes_nothing_from_the_next_one() -> None:
    """Its consumer frees its place after the row is written, and the retry may be faster."""
    row, other = waiting_run(), waiting_run()
    take(row)
    assert take(row, attempt=2) == ""
    assert held_places({row.pk: 1}) == []
    remove_places([(row.pk, 1)])
    assert state_of(row) == "held"
    assert take(other) != ""
    assert [place.pk for place in held_places({row.pk: 2, other.pk: 1})] == [row.pk]
    assert take(row, attempt=3) != ""
    remove_places([(row.pk, 2)])
    assert state_of(row) == "waiting", "it has changed since it was read"
    assert state_of(other) == "waiting"


def test_a_place_that_changes_during_a_sweep_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """The holder was killed, and the next attempt asks while the sweep looks."""
    now = clock.now()
    retrying = SchedulerExecutionFactory(retrying=True)
    old = LimitPlaceFactory(
        limit=LimitKeyFactory(), execution=retrying, state="held", attempt=1, since=now - 2 * SETTLED
    )
    filter_ = LimitPlace.objects.all().__class__.filter

    def ask_meanwhile(self: Any, *args: Any, **columns: Any) -> Any:
        if columns.get("pk__in") == [old.pk]:
            LimitPlace.objects.update(state="waiting", attempt=None, since=now)
        return filter_(self, *args, **columns)

    monkeypatch.setattr(LimitPlace.objects.all().__class__, "filter", ask_meanwhile)
    give_freed_places(get_broker("database://"), now)
    assert state_of(old.execution) == "waiting"


def passed(*ended: SchedulerExecution, rules: Limit = ONE, most: int = 5, queues: tuple[str, ...] = ("main",)) -> Any:
    with transaction.atomic():
        attempts = [LimitedAttempt(row.pk, 1, limited(rules=rules), place_of(row)) for row in ended]
        return pass_places(attempts, queues, most, clock.now())


def test_the_run_that_has_waited_longest_gets_the_place_of_one_that_has_ended() -> None:
    first, second, third = (waiting_run() for _ in range(3))
    for row in (first, second, third):
        take(row)
    with transaction.atomic():
        found = passed(first)
        assert ([one.row.id for one in found.rows], found.left) == ([second.pk], {})
        take_passed({second.pk: LimitedAttempt(second.pk, 1, limited())}, found.keys, clock.now())
    assert (state_of(second), state_of(third)) == ("held", "waiting")
    second.refresh_from_db()
    assert (second.deferred_at, second.reason) == (None, "")
    assert not LimitPlace.objects.filter(pk=first.pk).exists()
    assert take(second) == ""


def test_a_start_with_a_passed_place_is_noted_for_the_span() -> None:
    rules = Limit(at_once=1, starts=2, per=60, key="region")
    rows = [waiting_run() for _ in range(3)]
    for row in rows:
        take(row, rules=rules)
    for ended, following in pairwise(rows[:2]):
        with transaction.atomic():
            found = passed(ended, rules=rules)
            starts = {following.pk: LimitedAttempt(following.pk, 1, limited(rules=rules))}
            take_passed(starts, found.keys, clock.now())
    assert len(LimitKey.objects.get().started) == 2
    assert passed(rows[1], rules=rules).rows == [], "two have started within the span"


@pytest.mark.parametrize("places", [1, 2])
@pytest.mark.parametrize("case", ["no slot is free", "another queue", "not put off"])
def test_a_place_that_no_run_takes_here_is_given_afterwards(case: str, places: int) -> None:
    rules = Limit(at_once=places, key="region")
    ended = [waiting_run() for _ in range(places)]
    second = waiting_run(queue="mail" if case == "another queue" else "main")
    for row in (*ended, second):
        take(row, rules=rules)
    if case == "not put off":
        SchedulerExecution.objects.filter(pk=second.pk).update(deferred_at=None)
    rows, _keys, _freed, left = passed(*ended, rules=rules, most=0 if case == "no slot is free" else 5)
    assert rows == []
    assert list(left.values()) == [limited(rules=rules)]
    assert state_of(second) == "waiting"


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite locks the whole file")
def test_a_place_whose_key_another_process_has_locked_is_given_afterwards() -> None:
    first, second = waiting_run(), waiting_run()
    take(first)
    take(second)
    with transaction.atomic():
        (key,) = LimitKey.objects.select_for_update()
        ((rows, _keys, freed, left),) = at_once([lambda: passed(first)])
    assert (rows, freed, left) == ([], [], {key.pk: limited()})
    assert (state_of(first), state_of(second)) == ("held", "waiting")


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite locks the whole file")
def test_a_place_whose_next_run_another_process_has_locked_is_given_afterwards() -> None:
    first, second = waiting_run(), waiting_run()
    take(first)
    take(second)
    with transaction.atomic():
        list(SchedulerExecution.objects.select_for_update().filter(pk=second.pk))
        ((rows, _keys, _freed, left),) = at_once([lambda: passed(first)])
    assert (rows, list(left.values()), state_of(second)) == ([], [limited()], "waiting")


def test_nothing_is_left_if_no_run_waits() -> None:
    first = waiting_run()
    take(first)
    found = passed(first)
    assert (found.rows, found.left) == ([], {})
    assert not LimitPlace.objects.exists()


def test_more_places_than_slots_are_given_afterwards() -> None:
    rules = Limit(at_once=3, key="region")
    rows = [waiting_run() for _ in range(7)]
    for row in rows:
        take(row, rules=rules)
    with transaction.atomic():
        found, keys, _freed, left = passed(*rows[:3], rules=rules, most=2)
        assert [one.row.id for one in found] == [rows[3].pk, rows[4].pk]
        take_passed(
            {one.row.id: LimitedAttempt(one.row.id, 1, limited(rules=rules)) for one in found}, keys, clock.now()
        )
    assert list(left.values()) == [limited(rules=rules)]
    assert give_places({pk: one.rules for pk, one in left.items()}, clock.now()) == [rows[5].pk]


def test_keys_that_differ_in_case_only_are_two() -> None:
    first, second = waiting_run(), waiting_run()
    assert take(first, "EU") == take(second, "eu") == ""
    assert LimitKey.objects.count() == 2


def test_so_many_starts_within_a_span() -> None:
    rules, now = Limit(starts=2, per=60), clock.now()
    rows = [waiting_run() for _ in range(4)]
    said = [take(row, "", rules, now) for row in rows]
    assert [bool(text) for text in said] == [False, False, True, True]
    assert "2 runs of the worker" in said[2]
    limit = LimitKey.objects.get().pk
    assert give_places({limit: rules}, now + timedelta(seconds=59)) == []
    assert give_places({limit: rules}, now + timedelta(seconds=60)) == [rows[2].pk, rows[3].pk]


def test_runs_that_were_given_a_place_are_offered_at_once() -> None:
    now = clock.now()
    queued, claimed = waiting_run(state="queued"), waiting_run(state="claimed")
    assert sorted(wake([queued.pk, claimed.pk], now)) == [queued.pk, claimed.pk]
    for row in (queued, claimed):
        row.refresh_from_db()
        assert (row.deferred_at, row.reason) == (None, "")
    assert queued.wake_at == queued.executed_at, "it keeps its place in the queue"
    assert claimed.wake_at == now + CLAIM_GRACE, "a sweep publishes it if its consumer does not start it"
    assert wake([queued.pk, claimed.pk], now) == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite locks the whole file")
def test_of_runs_that_start_at_once_only_as_many_as_there_are_places_hold_one() -> None:
    for _ in range(10):
        rows = [waiting_run() for _ in range(6)]
        at_once([lambda row=row: take(row, "", Limit(at_once=2)) for row in rows])  # type: ignore[misc]
        held = LimitPlace.objects.filter(state="held").count()
        assert held <= 2
        LimitPlace.objects.all().delete()


def test_a_producer_frees_the_places_of_runs_that_do_not_run_any_longer() -> None:
    broker, now = get_broker("database://"), clock.now()
    limit = LimitKeyFactory(name=NAME)
    old = {"limit": limit, "since": now - 2 * SETTLED}
    running = LimitPlaceFactory(execution=SchedulerExecutionFactory(running=True), state="held", attempt=1, **old)
    LimitPlaceFactory(execution=SchedulerExecutionFactory(retrying=True), state="held", attempt=1, **old)
    LimitPlaceFactory(execution=SchedulerExecutionFactory(running=True), state="held", attempt=7, **old)
    LimitPlaceFactory(execution=SchedulerExecutionFactory(succeeded=True), state="granted", **old)
    LimitPlaceFactory(execution=SchedulerExecutionFactory(succeeded=True), state="waiting", **old)
    gone = LimitPlaceFactory(execution=SchedulerExecutionFactory(), state="held", **old)
    rows = SchedulerExecution.objects.filter(pk=gone.pk)
    rows._raw_delete(rows.db)
    young = LimitPlaceFactory(execution=SchedulerExecutionFactory(), state="held", limit=limit, since=now)
    granted = LimitPlaceFactory(execution=waiting_run(), state="granted", **old)
    assert give_freed_places(broker, now) == 0
    assert set(LimitPlace.objects.values_list("pk", flat=True)) == {running.pk, young.pk, granted.pk}


def test_a_producer_gives_free_places_to_runs_that_wait() -> None:
    broker, now = get_broker("database://"), clock.now()
    keys = [LimitKeyFactory(name=NAME) for _ in range(3)]
    rows = [LimitPlaceFactory(limit=limit, execution=waiting_run()) for limit in keys for _ in range(2)]
    assert give_freed_places(broker, now) == 3
    assert {row.pk for row in rows[::2]} == set(LimitPlace.objects.filter(state="granted").values_list("pk", flat=True))
    assert give_freed_places(broker, now) == 0


def test_no_sweep_looks_at_the_same_full_keys_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduling.producer.freed_places.KEYS_PER_SWEEP", 3)
    broker, now = get_broker("database://"), clock.now()
    for _ in range(6):
        limit = LimitKeyFactory(name=NAME)
        running = SchedulerExecutionFactory(running=True)
        LimitPlaceFactory(limit=limit, execution=running, state="held", attempt=running.attempt)
        LimitPlaceFactory(limit=limit, execution=waiting_run())
    open_place = LimitPlaceFactory(limit=LimitKeyFactory(name=NAME), execution=waiting_run())
    assert any(give_freed_places(broker, now) for _ in range(200))
    assert state_of(open_place.execution) == "granted"


def test_runs_of_a_handler_without_a_limit_wait_for_nothing() -> None:
    limit = LimitKeyFactory(name="tests.noop")
    row = LimitPlaceFactory(limit=limit, execution=waiting_run())
    assert give_freed_places(get_broker("database://"), clock.now()) == 1
    assert not LimitPlace.objects.filter(pk=row.pk).exists()


def test_without_a_handler_that_has_a_limit_no_query_is_made(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    monkeypatch.setattr("scheduling.producer.freed_places.handlers", list)
    with django_assert_num_queries(0):
        assert give_freed_places(get_broker("database://"), clock.now()) == 0


@pytest.mark.parametrize("started", [7, ["x", None, True, -5], {"a": 1}, "later"])
def test_starts_that_plain_sql_has_written_are_left_out(started: Any) -> None:
    row = waiting_run()
    rules = Limit(starts=1)
    take(row, "", rules)
    LimitKey.objects.update(started=started)
    free(row)
    take(waiting_run(), "", rules)


def test_a_lowered_limit_holds_for_all_keys_of_its_handler() -> None:
    row = LoweredLimitFactory(name=NAME, at_once=2)
    rules = Limit(at_once=5)
    assert LoweredLimits().apply("worker", NAME, rules) == Limit(at_once=2)
    assert LoweredLimits().apply("worker", "tests.other", rules) is rules
    LoweredLimit.objects.filter(pk=row.pk).update(at_once=0)
    assert LoweredLimits().apply("worker", NAME, rules) == rules


def test_a_start_counts_when_the_run_starts_and_not_when_it_is_let_through() -> None:
    """Consumers may be busy meanwhile, so the runs of two spans could start together."""
    rules, now = Limit(starts=2, per=60), clock.now()
    rows = [waiting_run() for _ in range(7)]
    for row in rows:
        take(row, "", rules, now)
    limit, later = LimitKey.objects.get().pk, now + timedelta(seconds=60)
    assert give_places({limit: rules}, later) == [rows[2].pk, rows[3].pk]
    busy = later + timedelta(seconds=90)
    assert give_places({limit: rules}, busy) == [], "those that were let through may start now"
    assert [take(row, "", rules, busy) == "" for row in rows[2:5]] == [True, True, False]
    assert give_places({limit: rules}, busy + timedelta(seconds=59)) == []
    assert give_places({limit: rules}, busy + timedelta(seconds=60)) == [rows[4].pk, rows[5].pk]


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite locks the whole file")
def test_a_run_that_was_let_through_lines_up_again_if_its_start_cannot_be_counted() -> None:
    rules, now = Limit(starts=1, per=60), clock.now()
    first, second = waiting_run(), waiting_run()
    take(first, "", rules, now)
    take(second, "", rules, now)
    limit, later = LimitKey.objects.get().pk, now + timedelta(seconds=60)
    give_places({limit: rules}, later)
    with transaction.atomic():
        list(LimitKey.objects.select_for_update())
        attempt = LimitedAttempt(second.pk, 1, limited("", rules), place_of(second))
        (taken,) = at_once([lambda: take_places([attempt], later)])
    assert (state_of(second), list(taken.locked)) == ("waiting", [limit])
    SchedulerExecution.objects.filter(pk=second.pk).update(deferred_at=later)  # as the consumer does
    assert give_places({limit: rules}, later) == [second.pk]
