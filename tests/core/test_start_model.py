"""How pauses, circuit breakers, limits and priorities act together."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduling.core.breaker import BreakerState, Circuit, CircuitBreaker
from scheduling.core.pauses import Scope, WorkPause
from scheduling.core.run_limit import Limit
from scheduling.core.start_model import KeyUse, Rules, StartModel, Wait, WaitingRun

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
PUSH = ("worker", "push")
BREAKER = CircuitBreaker(probe_every=60)
ONE = Limit(at_once=1, key="region")
QUEUES = ("main.high", "main", "main.low", "mail")


def run(execution: int, **columns: Any) -> WaitingRun:
    values = {"type": "worker", "handler": "push", "work": "main", "due": NOON, "key": "eu"} | columns
    return WaitingRun(execution, **values)


def model(
    *waiting: WaitingRun, rules: Rules | None = None, running: Mapping[str, int] | None = None, **known: Any
) -> StartModel:
    uses = {(*PUSH, key): KeyUse(count) for key, count in (running or {}).items()}
    return StartModel({PUSH: rules or Rules(ONE)}, waiting, uses, **known)


def pause(scope: Scope = Scope.QUEUE, name: str = "mail", until: datetime | None = None) -> WorkPause:
    return WorkPause(scope, "worker" if scope is Scope.HANDLER else "", name, "a move", "ada", until)


def order(found: StartModel, now: datetime = NOON) -> list[int]:
    return [one.execution for one in found.startable(QUEUES, now)]


def test_of_a_full_key_none_starts_and_another_key_is_not_kept_out() -> None:
    first, other = run(1), run(2, key="us")
    found = model(first, other, running={"eu": 1})
    assert found.wait_of(first, NOON) is Wait.PLACE
    assert order(found) == [2]


def test_the_place_belongs_to_the_run_that_is_in_line() -> None:
    new, old = run(1), run(2, in_line=7)
    found = model(new, old)
    assert found.wait_of(new, NOON) is Wait.LINE
    assert order(found) == [2], "although the new run has the lower number"


def test_two_in_line_and_two_places() -> None:
    runs = [run(1), run(2, in_line=8), run(3, in_line=7)]
    assert order(model(*runs, rules=Rules(Limit(at_once=2, key="region")))) == [2, 3]


@pytest.mark.parametrize("in_line", [None, 1])
def test_a_paused_run_waits_for_its_pause_and_keeps_no_run_of_its_key_out(in_line: int | None) -> None:
    stopped, other = run(1, work="mail", in_line=in_line), run(2)
    found = model(stopped, other, pauses=(pause(),))
    assert found.wait_of(stopped, NOON) is Wait.PAUSE
    assert order(found) == [2]


def test_a_pause_stops_also_a_run_whose_key_is_full() -> None:
    found = model(run(1), running={"eu": 1}, pauses=(pause(Scope.HANDLER, "push"),))
    assert found.wait_of(found.waiting[0], NOON) is Wait.PAUSE


def test_a_pause_that_has_ended_stops_nothing() -> None:
    found = model(run(1), pauses=(pause(Scope.SITE, "", until=NOON),))
    assert order(found) == [1]
    assert order(found, NOON - timedelta(seconds=1)) == []


def test_an_open_breaker_lets_one_probe_start() -> None:
    opened = Circuit(BreakerState.OPEN, since=NOON - timedelta(seconds=60))
    found = model(run(1), run(2, key="us"), rules=Rules(ONE, BREAKER), circuits={PUSH: opened})
    assert order(found) == [1]
    assert found.started(found.waiting[0], NOON).wait_of(run(2, key="us"), NOON) is Wait.BREAKER


def test_an_open_breaker_whose_probe_is_not_due_stops_all_runs_of_the_handler_alone() -> None:
    opened = Circuit(BreakerState.OPEN, since=NOON - timedelta(seconds=59))
    found = model(run(1), run(2, handler="pull"), rules=Rules(None, BREAKER), circuits={PUSH: opened})
    assert order(found) == [2]


def test_a_probe_needs_a_place() -> None:
    opened = Circuit(BreakerState.OPEN, since=NOON - timedelta(seconds=60))
    found = model(run(1), rules=Rules(ONE, BREAKER), running={"eu": 1}, circuits={PUSH: opened})
    assert found.wait_of(found.waiting[0], NOON) is Wait.PLACE


def test_so_many_starts_within_a_span() -> None:
    rules = Rules(Limit(starts=2, per=60))
    started = (NOON.timestamp() - 59, NOON.timestamp() - 1)
    found = StartModel({PUSH: rules}, (run(1, key=""),), {(*PUSH, ""): KeyUse(0, started)})
    assert found.wait_of(found.waiting[0], NOON) is Wait.SPAN
    assert order(found, NOON + timedelta(seconds=1)) == [1]


def test_a_start_takes_a_place_and_counts_within_the_span() -> None:
    first, second, third = run(1), run(2), run(3)
    found = model(first, second, third, rules=Rules(Limit(at_once=2, starts=1, per=60, key="region")))
    assert order(found) == [1]
    after = found.started(first, NOON)
    assert after.uses[(*PUSH, "eu")] == KeyUse(1, (NOON.timestamp(),))
    assert after.wait_of(second, NOON) is Wait.SPAN
    assert [one.execution for one in after.waiting] == [2, 3]


def test_turns_go_by_priority_with_ageing_and_a_crashed_run_goes_first() -> None:
    runs = [
        run(1, key="a"),
        run(2, key="b", work="main.high", due=NOON + timedelta(minutes=4)),
        run(3, key="c", work="main.low", due=NOON - timedelta(minutes=7)),
        run(4, key="d", crashed=True, due=NOON + timedelta(minutes=9)),
        run(5, key="e", work="other"),
    ]
    assert order(model(*runs)) == [4, 3, 2, 1], "and no run of a queue that is not served"


def test_a_handler_without_options_starts() -> None:
    assert [one.execution for one in StartModel(waiting=(run(1), run(2))).startable(["main"], NOON)] == [1, 2]
