"""A producer lets waiting runs through: the probe of an open breaker, and at its pace those of a half open one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.execution.breakers import change_circuit, read_circuit
from scheduling.models import Breaker, SchedulerExecution
from scheduling.producer.open_breakers import LATE_ARRIVALS, let_through
from tests.apps.sample.depending import PACE
from tests.factories import (
    BreakerFactory,
    LimitPlaceFactory,
    ManualExecutionFactory,
    PauseFactory,
    SchedulerFactory,
)

pytestmark = pytest.mark.django_db

NAME = "tests.depending"


def breaker(**columns: Any) -> Breaker:
    since = clock.now() - timedelta(minutes=5)
    row: Breaker = BreakerFactory(**{"name": NAME, "since": since, "probed_at": since} | columns)
    return row


def waiting(minutes: int = 50, handler: str = NAME, **columns: Any) -> SchedulerExecution:
    now = clock.now()
    row: SchedulerExecution = ManualExecutionFactory(
        scheduler=SchedulerFactory(rare=True, handler=handler, params={"directory": "x"} if handler == NAME else {}),
        **{"state": "queued", "wake_at": now + timedelta(minutes=minutes), "deferred_at": now, "trigger": "schedule"}
        | columns,
    )
    return row


def woken() -> set[int]:
    soon = clock.now() + timedelta(minutes=5)
    return set(SchedulerExecution.objects.filter(wake_at__lte=soon).values_list("pk", flat=True))


def test_the_run_that_has_waited_longest_is_the_probe_and_no_other_follows_while_it_is_there() -> None:
    row = breaker()
    waiting(50)
    first, other = waiting(40), waiting(30, handler="tests.noop")
    assert let_through(clock.now()) == 1
    assert woken() == {first.pk}
    assert other.pk not in woken()
    first.refresh_from_db()
    assert (first.deferred_at, first.reason) == (None, "")
    circuit = read_circuit(row.type, row.name)
    assert (circuit.probe, circuit.granted) == (first.pk, (first.pk,))
    assert let_through(clock.now() + timedelta(days=1)) == 0


def test_a_run_that_a_user_asked_for_is_the_first_probe() -> None:
    breaker()
    waiting(30)
    manual = waiting(50, trigger="manual")
    let_through(clock.now())
    assert woken() == {manual.pk}


def test_no_probe_comes_before_the_interval_is_over() -> None:
    breaker(probed_at=clock.now())
    waiting()
    assert let_through(clock.now()) == 0


@pytest.mark.parametrize("state", ["succeeded", "cancelled", "retrying", "queued"])
def test_a_probe_that_its_consumer_has_not_settled_makes_room_for_the_next(state: str) -> None:
    lost = waiting(state=state, wake_at=clock.now())
    breaker(probe=lost.pk)
    following = waiting()
    assert let_through(clock.now()) == 1
    assert following.pk in woken()


@pytest.mark.parametrize(("state", "granted"), [("running", False), ("queued", True), ("claimed", True)])
def test_a_probe_that_waits_for_its_start_or_runs_keeps_others_out(state: str, granted: bool) -> None:
    probe = waiting(state=state, wake_at=clock.now(), deferred_at=None)
    breaker(probe=probe.pk, granted=[probe.pk] if granted else [])
    waiting()
    assert let_through(clock.now()) == 0


def test_a_probe_that_waits_again_makes_room_for_the_next() -> None:
    """Its queue was paused after it was let through."""
    probe = waiting()
    breaker(probe=probe.pk, granted=[probe.pk])
    following = waiting(40)
    assert let_through(clock.now()) == 1
    assert woken() == {following.pk}


def test_a_run_of_a_paused_queue_is_no_probe() -> None:
    breaker()
    PauseFactory(of_queue=True, name="main")
    waiting(30)
    other = waiting(50, queue="mail")
    assert let_through(clock.now()) == 1
    assert woken() == {other.pk}


@pytest.mark.parametrize("state", ["open", "half_open", "closed"])
def test_a_run_that_waits_for_a_place_is_left_to_its_line(state: str) -> None:
    breaker(state=state, since=clock.now() - timedelta(seconds=30 if state == "closed" else 300))
    in_line, other = waiting(30), waiting(50)
    LimitPlaceFactory(execution=in_line, state="waiting")
    let_through(clock.now())
    assert woken() == {other.pk}


def test_a_half_open_breaker_lets_runs_through_at_its_pace_the_oldest_first() -> None:
    now = clock.now()
    breaker(state="half_open", since=now)
    rows = [waiting(minutes) for minutes in range(50, 20, -1)]
    assert let_through(now) == 1
    assert let_through(now + timedelta(seconds=10 / PACE)) == 10
    assert woken() == {row.pk for row in rows[-11:]}
    assert let_through(now + timedelta(seconds=10 / PACE)) == 0


def test_a_half_open_breaker_for_which_nothing_waits_is_closed_and_late_arrivals_go_on() -> None:
    row, now = breaker(state="half_open"), clock.now()
    assert let_through(now) == 0
    row.refresh_from_db()
    assert (row.state, row.openings) == ("closed", 1)
    late = waiting()
    assert let_through(now + LATE_ARRIVALS / 2) == 1
    assert late.pk in woken()
    waiting()
    assert let_through(now + LATE_ARRIVALS) == 0


def test_while_the_handler_is_paused_no_run_is_let_through() -> None:
    breaker()
    PauseFactory(name=NAME)
    waiting()
    assert let_through(clock.now()) == 0


def test_runs_of_a_handler_that_has_no_breaker_any_longer_go_on() -> None:
    breaker(name="tests.noop")
    row = waiting(handler="tests.noop")
    assert let_through(clock.now()) == 1
    assert woken() == {row.pk}


def test_the_breaker_of_a_handler_that_only_other_code_knows_is_left_to_it() -> None:
    breaker(name="tests.of_another_release")
    assert let_through(clock.now()) == 0


def test_without_a_handler_that_has_a_breaker_no_query_is_made(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    monkeypatch.setattr("scheduling.producer.open_breakers.handlers", list)
    with django_assert_num_queries(0):
        assert let_through(clock.now()) == 0


@pytest.mark.parametrize(
    "columns",
    [
        {"state": "ajar"},
        {"counts": 7},
        {"counts": [[1, 2]]},
        {"granted": {"a": 1}},
        {"granted": ["x"]},
    ],
)
def test_a_row_that_cannot_be_used_stops_no_other_and_counts_as_closed(columns: dict[str, Any]) -> None:
    bad = breaker(name="tests.noop")
    Breaker.objects.filter(pk=bad.pk).update(**{"granted": [], "counts": []} | columns)
    breaker()
    row = waiting()
    assert let_through(clock.now()) == 1
    assert woken() == {row.pk}
    assert read_circuit("worker", "tests.noop").state == "closed"
    _before, after = change_circuit("worker", "tests.noop", lambda known: known, clock.now())
    assert after.state == "closed"
