"""The tests check the names and arguments of the queues, and the choice of a wait queue."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.broker.rabbitmq.ladder import LADDER, rung_for, whole_seconds
from scheduling.broker.rabbitmq.messages import earlier_retries
from scheduling.broker.rabbitmq.mismatch import mismatch
from scheduling.broker.rabbitmq.queue import Queue
from scheduling.broker.rabbitmq.topology import Topology
from scheduling.core.retry import DELAY_MS, RetryPolicy, delays

ORIGINAL = Topology(retry_delay_ms=30_000)


def declared() -> dict[str, Queue]:
    return {
        queue.name: queue
        for queue in (*ORIGINAL.base(), *ORIGINAL.rungs("main", LADDER), *ORIGINAL.rungs("standalone", LADDER))
    }


def test_queues_have_the_arguments_of_the_original_contract() -> None:
    queues = declared()
    classic = {"x-queue-type": "classic"}  # this type is the broker's default
    assert queues["cron_scheduler"].arguments == classic | {
        "x-message-deduplication": True,
        "x-dead-letter-exchange": "cron_dlx",
        "x-dead-letter-routing-key": "retry",
    }
    assert queues["cron_scheduler_retry"].arguments == classic | {
        "x-message-ttl": 30_000,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "cron_scheduler",
    }
    assert queues["cron_scheduler_failed"].arguments == classic
    bindings = {name: queue.binding for name, queue in queues.items()}
    assert (bindings["cron_scheduler"], bindings["cron_scheduler_retry"], bindings["cron_scheduler_failed"]) == (
        None,
        "retry",
        "failed",
    )


def test_no_queue_drops_messages() -> None:
    """A queue that expires or has a maximum length loses messages.

    RabbitMQ also looks for cycles. If a message expires in every queue of a cycle, RabbitMQ drops the message. So the
    work queues have no TTL.
    """
    for queue in declared().values():
        assert "x-expires" not in queue.arguments
        assert "x-max-length" not in queue.arguments
        if queue.name in {ORIGINAL.work(name) for name in ("main", "standalone", "immediate")}:
            assert "x-message-ttl" not in queue.arguments


def test_a_quorum_work_queue_dead_letters_into_the_failed_queue() -> None:
    immediate = declared()["cron_scheduler_immediate"]
    assert immediate.arguments["x-queue-type"] == "quorum"
    assert immediate.arguments["x-dead-letter-routing-key"] == "failed"
    assert immediate.arguments["x-delivery-limit"] > 20  # no retry policy needs more than 20 deliveries


def test_quorum_queues_have_names_of_their_own() -> None:
    """The type of an existing queue cannot be changed. With other names, both types can be declared at once."""
    quorum = replace(ORIGINAL, queue_type="quorum")
    names = {queue.name for queue in (*quorum.base(), *quorum.rungs("main", LADDER), *quorum.rungs("standalone", [1]))}
    assert not names & set(declared())
    assert quorum.exchange != ORIGINAL.exchange
    assert quorum.former() == ORIGINAL
    assert {queue.arguments["x-queue-type"] for queue in quorum.base()} == {"quorum"}


def test_no_quorum_work_queue_sends_messages_in_a_cycle() -> None:
    """RabbitMQ drops a message that reaches the delivery limit and then comes back to the same queue."""
    quorum = Topology(queue_type="quorum")
    for queue in ("main", "standalone"):
        arguments = next(one.arguments for one in quorum.base() if one.name == quorum.work(queue))
        assert arguments["x-dead-letter-routing-key"] == "failed"
        assert arguments["x-dead-letter-strategy"] == "at-least-once"
        assert arguments["x-delivery-limit"] >= 50
    assert not any(quorum.is_nacked(queue.name) for queue in quorum.base())
    assert [queue.name for queue in quorum.base() if queue.binding == "failed"] == [quorum.failed]


@pytest.mark.parametrize(("major", "limit"), [(0, None), (3, None), (4, -1), (5, -1)])
def test_the_failed_queue_has_no_delivery_limit(major: int, limit: int | None) -> None:
    """RabbitMQ 3.10 would drop a message with the limit -1 at its first return."""
    failed = next(queue for queue in Topology(queue_type="quorum").base() if queue.unlimited)
    assert failed.name == Topology(queue_type="quorum").failed
    assert failed.arguments_on(major).get("x-delivery-limit") == limit
    assert not any(queue.unlimited for queue in ORIGINAL.base())


@pytest.mark.parametrize("queue", ["main", "standalone"])
def test_each_wait_queue_returns_to_its_work_queue_and_is_named_by_its_delay(queue: str) -> None:
    for seconds in LADDER:
        wait_queue = declared()[f"{ORIGINAL.work(queue)}_retry.{seconds}"]
        assert wait_queue.arguments == {
            "x-queue-type": "quorum",
            "x-message-ttl": seconds * 1000,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": ORIGINAL.work(queue),
            "x-dead-letter-strategy": "at-least-once",
            "x-overflow": "reject-publish",
        }
        assert wait_queue.binding == ORIGINAL.rung_key(queue, seconds)


def test_no_two_queues_share_a_name_or_a_key() -> None:
    queues = list(declared().values())
    bindings = [queue.binding for queue in queues if queue.binding is not None]
    assert len(queues) == 6 + 2 * len(LADDER)
    assert len(set(bindings)) == len(bindings)


def test_every_name_begins_with_the_prefix() -> None:
    shared = Topology("shop_")
    queues = [*shared.base(), *shared.rungs("main", [1]), *shared.rungs("standalone", [1])]
    assert shared.exchange == "shop_cron_dlx"
    assert all(queue.name.startswith("shop_cron_scheduler") for queue in queues)
    for queue in queues:
        target = queue.arguments.get("x-dead-letter-routing-key", "")
        assert queue.arguments.get("x-dead-letter-exchange") in (None, "", "shop_cron_dlx")
        assert target in {"", "retry", "standalone.retry", "failed"} or target.startswith("shop_")


def test_the_ladder_covers_the_bounds_with_small_steps() -> None:
    assert (LADDER[0] * 1000, LADDER[-1] * 1000) == DELAY_MS
    assert list(LADDER) == sorted(set(LADDER))
    assert len(LADDER) == 34
    steps = [upper / lower for lower, upper in pairwise(LADDER[5:])]
    assert max(steps) < 1.34


def test_delays_of_the_original_contract_have_wait_queues() -> None:
    assert whole_seconds(delays(RetryPolicy())) == {30, 60, 120}
    assert whole_seconds([22_500, 1, 0]) == {23, 1}


@pytest.mark.parametrize(
    ("delay_ms", "seconds"),
    [(0, 0), (-5, 0), (1, 1), (1000, 1), (1001, 2), (30_000, 30), (200_000, 240), (3_600_000, 3600), (9e9, 3600)],
)
def test_a_requested_delay_is_rounded_up(delay_ms: int, seconds: int) -> None:
    assert rung_for(delay_ms, LADDER) == seconds


@given(st.integers(1, 3_600_000), st.floats(0, 1, exclude_max=True))
def test_a_random_delay_is_rounded_up_or_down(delay_ms: int, drawn: float) -> None:
    seconds = rung_for(delay_ms, LADDER, lambda: drawn)
    lower = max((step for step in LADDER if step * 1000 <= delay_ms), default=1)
    upper = min(step for step in LADDER if step * 1000 >= delay_ms)
    assert seconds in {lower, upper}


@pytest.mark.parametrize("delay_ms", [1_000, 1_250, 17_400, 70_000, 2_050_000])
def test_random_delays_keep_the_mean(delay_ms: int) -> None:
    draw = random.Random(7).random
    chosen = [rung_for(delay_ms, LADDER, draw) for _ in range(20_000)]
    assert sum(chosen) / len(chosen) == pytest.approx(delay_ms / 1000, rel=0.01)


MISMATCHES = [
    (
        "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received the value "
        "'60000' of type 'signedint' but current is the value '30000' of type 'signedint'",
        ("queue", "q", "x-message-ttl", "'60000'", "'30000'", "/"),
    ),
    (
        "PRECONDITION_FAILED - inequivalent arg 'x-max-length' for queue 'q' in vhost 'v': received none but "
        "current is the value '5' of type 'long'",
        ("queue", "q", "x-max-length", "no value", "'5'", "v"),
    ),
    (
        "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'cron_dlx' in vhost '/': received 'direct' but "
        "current is 'fanout'",
        ("exchange", "cron_dlx", "type", "'direct'", "'fanout'", "/"),
    ),
    (
        "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q' in vhost '/': received 'true' but current "
        "is 'false'",
        ("queue", "q", "durable", "'true'", "'false'", "/"),
    ),
]


@pytest.mark.parametrize(("text", "expected"), MISMATCHES)
def test_the_brokers_refusal_becomes_an_error_message(text: str, expected: tuple[str, ...]) -> None:
    found = mismatch(text)
    assert found is not None
    assert (found.kind, found.name, found.argument, found.wanted, found.found, found.vhost) == expected
    sentence = found.sentence()
    for word in (*expected[1:5], "delete", "?prefix="):
        assert word in sentence


def test_other_refusals_are_not_parsed() -> None:
    assert mismatch("PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out") is None


DEATHS = [
    {"queue": "cron_scheduler_retry", "reason": "expired", "count": 7},
    {"queue": "cron_scheduler", "reason": "rejected", "count": 2},
]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, 0),
        ({"x-death": DEATHS}, 2),  # only the second entry counts, because the first entry belongs to the wait queue
        ({"x-death": DEATHS, "x-retry-count": 3}, 3),
        ({"x-retry-count": 10**9}, 19),
        ({"x-retry-count": True}, 0),
        ({"x-retry-count": "2"}, 0),
        ({"x-retry-count": -1}, 0),
        ({"x-death": "nonsense"}, 0),
        ({"x-death": [None, {"count": "x"}, {"queue": 1}]}, 0),
    ],
)
def test_earlier_retries_of_a_foreign_message(headers: dict[str, object], expected: int) -> None:
    assert earlier_retries(headers, "cron_scheduler") == expected
