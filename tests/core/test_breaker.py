"""The circuit breaker opens on a share of failures, lets one probe an interval through, and then a set pace."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.core.breaker import (
    BUCKETS,
    ERROR_LENGTH,
    MOST_AT_ONCE,
    BreakerState,
    Circuit,
    CircuitBreaker,
    Ends,
    breaker_problem,
)
from tests.support import examples

RULES = CircuitBreaker(share=0.5, window=60, least=4, probe_every=30, pace=2)
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DOWN = Ends(4, 4, "builtins.ConnectionError: no route\nto host")


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def opened() -> Circuit:
    return Circuit().recorded(DOWN, RULES, NOW)


def half_open() -> Circuit:
    return opened().with_probe(1, after(30)).probe_ended(failed=False, error="", rules=RULES, now=after(31))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("share", 0), ("share", 1.1), ("share", True), ("share", "0.5"), ("share", float("nan")), ("window", 0.5),
        ("window", 86_401), ("least", 0), ("least", 1.5), ("probe_every", 0), ("probe_every", None), ("pace", 0),
        ("pace", float("inf")),
    ],
)  # fmt: skip
def test_a_value_out_of_bounds_is_refused_with_its_name(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"CircuitBreaker: {name} is a number from"):
        CircuitBreaker(**{name: value})


def test_an_option_of_another_type_is_named() -> None:
    assert (breaker_problem(None), breaker_problem(RULES)) == ("", "")
    assert breaker_problem(0.5) == "breaker is a CircuitBreaker, not 0.5."


@pytest.mark.parametrize(
    ("ends", "state"),
    [(Ends(3, 3), "closed"), (Ends(4, 1), "closed"), (Ends(4, 2), "open"), (Ends(100, 49), "closed"), (DOWN, "open")],
)
def test_it_opens_when_enough_runs_have_ended_and_the_share_has_failed(ends: Ends, state: str) -> None:
    assert Circuit().recorded(ends, RULES, NOW).state == state


def test_only_the_window_counts() -> None:
    circuit = Circuit().recorded(Ends(3, 3), RULES, NOW)
    assert circuit.recorded(Ends(1, 1), RULES, after(50)).state == "open"
    assert circuit.recorded(Ends(1, 1), RULES, after(70)).state == "closed"


def test_successes_alone_do_not_open_it_even_if_many_have_failed_before() -> None:
    circuit = Circuit(counts=((RULES.bucket(NOW), 10, 10),))
    assert circuit.recorded(Ends(1, 0), RULES, NOW).state == "closed"


def test_it_says_why_it_is_open_in_one_line() -> None:
    circuit = opened()
    said = "4 of 4 runs within 60 s have failed."
    assert circuit.error == "builtins.ConnectionError: no route to host"
    assert circuit.reason == said
    sentence = circuit.sentence("the worker 'push'", RULES)
    assert sentence == (
        f"The circuit breaker of the worker 'push' is open since 2026-03-01 12:00:00 UTC: {said} "
        "The next probe follows at 12:00:30 UTC at the earliest."
    )
    long = Circuit().recorded(Ends(4, 4, "\x00\u202e" * 10_000), RULES, NOW)
    assert len(long.error) <= ERROR_LENGTH


def test_one_probe_an_interval_starts_and_no_other_run() -> None:
    circuit = opened()
    assert not circuit.lets_start(1, RULES, after(29))
    assert circuit.lets_start(1, RULES, after(30))
    circuit = circuit.started(1, after(30))
    assert not circuit.lets_start(1, RULES, after(100)), "a retry of a lost probe is no probe"
    assert not circuit.lets_start(2, RULES, after(100)), "the first probe has not ended"
    circuit = circuit.probe_ended(failed=True, error="again", rules=RULES, now=after(40))
    assert (circuit.state, circuit.error) == ("open", "again")
    assert not circuit.lets_start(2, RULES, after(59))
    assert circuit.lets_start(2, RULES, after(60))


def test_a_waiting_run_that_was_chosen_as_the_probe_keeps_others_out() -> None:
    circuit = opened().with_probe(7, after(30))
    assert circuit.lets_start(7, RULES, after(500))
    assert not circuit.lets_start(8, RULES, after(500))
    assert circuit.started(7, after(50)).next_probe(RULES) == after(80)
    assert circuit.without_probe().lets_start(8, RULES, after(60))


def test_after_a_probe_has_succeeded_waiting_runs_start_at_the_pace() -> None:
    circuit = half_open()
    assert (circuit.state, circuit.room(RULES, after(31))) == (BreakerState.HALF_OPEN, 1)
    circuit = circuit.granting([2])
    assert circuit.lets_start(2, RULES, after(31))
    assert not circuit.lets_start(3, RULES, after(31))
    assert not circuit.started(2, after(31)).lets_start(2, RULES, after(31)), "it starts once"
    assert circuit.room(RULES, after(33)) == 4
    assert circuit.room(RULES, after(10**6)) == MOST_AT_ONCE
    assert circuit.room(RULES, NOW) == 0, "the clock was set back"


def test_half_open_it_opens_again_on_a_failure() -> None:
    circuit = half_open().granting([2]).recorded(Ends(1, 1, "down again"), RULES, after(33))
    assert (circuit.state, circuit.openings, circuit.granted) == ("open", 2, ())
    assert circuit.next_probe(RULES) == after(63)


def test_half_open_successes_count_and_few_failures_among_them_do_not_open_it() -> None:
    circuit = half_open().recorded(Ends(8, 0), RULES, after(32)).recorded(Ends(1, 1), RULES, after(33))
    assert circuit.state == "half_open"


def test_while_it_is_open_only_its_probe_counts() -> None:
    circuit = opened()
    assert circuit.recorded(Ends(100, 0), RULES, after(1)) is circuit


def test_closed_and_half_opened_by_a_user_begin_anew() -> None:
    assert half_open().closed(after(90)) == Circuit(BreakerState.CLOSED, after(90), openings=1)
    again = opened().half_opened(after(5))
    assert (again.state, again.counts, again.granted, again.probe) == ("half_open", (), (), None)


def test_a_clock_that_was_set_back_forgets_the_future() -> None:
    circuit = Circuit().recorded(Ends(3, 3), RULES, after(3600)).recorded(Ends(1, 1), RULES, NOW)
    assert (circuit.state, len(circuit.counts)) == ("closed", 1)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ok", "fail", "start", "grant", "choose", "probe_ok", "probe_fail", "probe_none"]),
        st.floats(0, 40),
        st.integers(1, 5),
    ),
    max_size=60,
)


def step(circuit: Circuit, what: str, pk: int, now: datetime) -> Circuit:
    """What may happen to a breaker. A probe ends only after its start."""
    match what:
        case "ok" | "fail":
            return circuit.recorded(Ends(pk, pk if what == "fail" else 0, "x"), RULES, now)
        case "start" if circuit.lets_start(pk, RULES, now):
            return circuit.started(pk, now)
        case "choose" if circuit.probe_is_due(RULES, now):
            return circuit.with_probe(pk, now)
        case "grant":
            return circuit.granting(range(pk)[: circuit.room(RULES, now)])
        case "probe_none" if circuit.probe is not None and not circuit.granted:
            return circuit.without_probe()
        case "probe_ok" | "probe_fail" if circuit.probe is not None and not circuit.granted:
            return circuit.probe_ended(failed=what == "probe_fail", error="x", rules=RULES, now=now)
    return circuit


@given(STEPS)
@examples(200)
def test_whatever_happens_probes_are_an_interval_apart_and_the_pace_is_kept(
    steps: list[tuple[str, float, int]],
) -> None:
    circuit, at = Circuit(), 0.0
    probes: list[float] = []
    for what, seconds, pk in steps:
        at += seconds
        now, before = after(at), circuit
        circuit = step(circuit, what, pk, now)
        if what == "start" and before.state is BreakerState.OPEN and circuit is not before:
            probes.append(at)
        assert len(circuit.counts) <= BUCKETS
        if circuit.state is BreakerState.HALF_OPEN and circuit.since is not None:
            assert circuit.released <= 1 + (now - circuit.since).total_seconds() * RULES.pace
        if circuit.state is BreakerState.OPEN and before.state is not BreakerState.OPEN:
            assert not circuit.lets_start(1, RULES, now), "the first probe comes after an interval"
    assert all(later - earlier >= RULES.probe_every for earlier, later in pairwise(probes))


def test_a_probe_that_found_no_place_is_the_next_one_of_another_run() -> None:
    probed = opened().with_probe(1, after(30)).started(1, after(30))
    back = probed.given_back(1)
    assert back.probe is None
    assert not back.lets_start(2, RULES, after(59))  # at most one probe an interval
    assert back.lets_start(2, RULES, after(60))
    assert probed.given_back(2) == probed


def test_a_run_that_found_no_place_after_the_probe_keeps_its_turn() -> None:
    granted = replace(half_open(), granted=(7,))
    assert granted.started(7, after(32)).given_back(7).lets_start(7, RULES, after(33))
    assert granted.given_back(7) == granted
