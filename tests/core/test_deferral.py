"""A run waits for code that another process has, and for no longer than a deploy may take."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduling.core.deferral import DEPLOY_GRACE, Peer, offered_after, reason_for_refused, reason_for_unknown
from tests.support import NOON

SECOND = timedelta(seconds=1)


def peer(name: str = "b", ago: float = 1, contract: str = "new", *, consumes: bool = True, alive: bool = True) -> Peer:
    return Peer(name, consumes, alive, NOON - ago * SECOND, contract)


def unknown(*peers: Peer, asked: float = 0) -> str:
    return reason_for_unknown("the worker 'x'", "a", peers, NOON - asked * SECOND, NOON)


def refused(*peers: Peer, asked: float = 0, by: tuple[str, ...] = ("old",)) -> str:
    return reason_for_refused("the worker 'x'", "a", by, peers, NOON - asked * SECOND, NOON)


def test_it_waits_as_long_as_a_consumer_knows_the_handler() -> None:
    for asked in (0, 59, 61, 10**6):
        said = unknown(peer("host-2"), peer("host-1"), asked=asked)
        assert said.startswith("It waits for a consumer that knows the worker 'x': host-1 and 1 more. The consumer a")


@pytest.mark.parametrize("asked", [0, 59])
def test_it_waits_a_minute_for_a_handler_that_no_consumer_knows(asked: float) -> None:
    until = f"{NOON + DEPLOY_GRACE - asked * SECOND:%H:%M:%S} UTC"
    said = f"No consumer that is alive knows the worker 'x'. It waits until {until} for a deploy that brings it."
    assert unknown(asked=asked) == unknown(peer(consumes=False), asked=asked) == said


def test_after_a_minute_it_is_retried() -> None:
    assert unknown(asked=60) == ""
    assert unknown(peer(consumes=False), asked=60) == ""
    assert unknown(peer(alive=False, ago=60), asked=60) == ""


def test_the_minute_begins_when_the_last_consumer_that_knew_the_handler_has_gone() -> None:
    assert "12:00:30 UTC" in unknown(peer(alive=False, ago=30), peer(alive=False, ago=50), asked=10**6)


def test_times_in_the_future_do_not_prolong_the_wait() -> None:
    assert "12:01:00 UTC" in unknown(asked=-(10**6))
    assert "12:01:00 UTC" in unknown(peer(alive=False, ago=-(10**6)))


def test_refused_params_wait_for_another_contract() -> None:
    assert "another version of the worker 'x': b." in refused(peer(), asked=10**6)
    assert refused() == refused(peer(contract="old")) == refused(peer(alive=False)) == ""


def test_each_contract_refuses_params_once() -> None:
    """Otherwise params that no version accepts would go to and fro for ever."""
    assert refused(peer(), by=("old", "new")) == ""


def test_refused_params_wait_a_minute_for_the_consumers_of_a_producer() -> None:
    assert "It waits until 12:00:01 UTC for a consumer with the code of b." in refused(peer(consumes=False), asked=59)
    assert refused(peer(consumes=False), asked=60) == ""


@pytest.mark.parametrize(("asked", "delay"), [(-5, 1), (0, 1), (4, 1), (20, 5), (40, 10), (10**6, 10)])
def test_the_delay_grows_with_the_wait(asked: float, delay: float) -> None:
    assert offered_after(NOON - asked * SECOND, NOON) == delay * SECOND


def test_hostile_names_are_made_visible() -> None:
    assert "\u202e" not in unknown(peer("\u202eevil")) + refused(peer("\u202eevil"))
