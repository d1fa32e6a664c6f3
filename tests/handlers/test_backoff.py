"""A handler has its own delays between retries. A schedule may replace them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command

from scheduling.core.retry import RetryPolicy, delays
from scheduling.handlers import find, registry, worker
from scheduling.handlers.retry_delays import known_delays
from scheduling.management.base import SchedulingCommand
from scheduling.models import Scheduler


@pytest.fixture(autouse=True)
def restore() -> Iterator[None]:
    before = dict(registry._handlers)
    yield
    registry._handlers.clear()
    registry._handlers.update(before)


def register(name: str, policy: RetryPolicy) -> None:
    worker(name, retry=policy)(lambda params, run: None)


def test_check_names_the_handler_and_the_other_handlers_are_registered() -> None:
    register("tests.below", RetryPolicy(backoff=lambda number: -number))
    register("tests.grows", RetryPolicy(backoff=lambda number: 7 * number))
    found = [error.msg for error in run_checks() if error.id == "scheduling.E007"]
    said = "The backoff of retry 1 must be a number of seconds from 1 to 3600, not -1."
    assert found == [f"Worker 'tests.below': {said}"]
    with pytest.raises(CommandError, match=r"Worker 'tests\.below'"):
        call_command("check")
    SchedulingCommand().check(tags=SchedulingCommand.requires_system_checks)  # producers and consumers start
    assert delays(find("worker", "tests.grows").retry or RetryPolicy()) == [7_000, 14_000, 21_000]


@pytest.mark.django_db
def test_the_wait_queues_of_a_function_and_of_a_list_are_known_when_a_process_starts() -> None:
    register("tests.function", RetryPolicy(backoff=lambda number: 777 + number, max_retries=2))
    register("tests.list", RetryPolicy(backoff=[888, 889]))
    assert {778_000, 779_000, 888_000, 889_000} <= known_delays()
    assert 780_000 not in known_delays()


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({}, [5_000, 6_000, 9_000]),
        ({"max_retries": 5}, [5_000, 6_000, 9_000, 9_000, 9_000]),
        ({"retry_max_delay_ms": 6_000}, [5_000, 6_000, 6_000]),
        ({"retry_delay_ms": 10_000}, [10_000, 20_000, 40_000]),
        ({"retry_multiplier": 3.0}, [5_000, 15_000, 45_000]),
    ],
)
def test_the_values_of_a_schedule_replace_those_of_a_list(columns: dict[str, float], expected: list[int]) -> None:
    policy = Scheduler(**columns).retry_policy(RetryPolicy(backoff=[5, 6, 9]))
    assert delays(policy) == expected


def test_a_first_delay_of_a_schedule_keeps_the_formula_and_a_multiplier_does_not() -> None:
    linear = RetryPolicy(backoff="linear")
    assert delays(Scheduler(retry_delay_ms=2_000).retry_policy(linear)) == [2_000, 4_000, 6_000]
    assert delays(Scheduler(retry_multiplier=1.5).retry_policy(linear)) == [30_000, 45_000, 67_500]
