"""Names of queues and priorities, and the work queues that they make."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.core.queues import (
    LATER,
    MAIN,
    WORK_QUEUE_LENGTH,
    Priority,
    choice_problem,
    is_work_queue,
    later,
    priority_of,
    priority_problem,
    queue_of,
    queue_problem,
    work_queue,
    work_queues,
)
from tests.core.queue_names import HOSTILE

NAMES = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,39}", fullmatch=True).filter(
    lambda name: name != "immediate" and not queue_problem(name)
)


@pytest.mark.parametrize(
    "name", ["main", "reports", "a", "9", "eu-west_1", "high", "retry", "reports_retry", "immediate", "a" * 40]
)
def test_a_queue_may_have_this_name(name: str) -> None:
    assert queue_problem(name) == ""
    assert is_work_queue(work_queue(name, "low"))


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_a_queue_cannot_have_this_name(name: Any) -> None:
    problem = queue_problem(name)
    assert problem.endswith(".")
    assert len(problem) < 250
    assert name == "" or choice_problem(name, "") == problem
    assert not isinstance(name, str) or name in ("standalone", "main.high") or not is_work_queue(name)


@pytest.mark.parametrize("name", ["", "High", "urgent", "\ud800", 0, None, 5, ["low"]], ids=ascii)
def test_there_is_no_other_priority(name: Any) -> None:
    assert "high, normal, low" in priority_problem(name)
    assert name == "" or choice_problem("", name) == priority_problem(name)


@given(queue=NAMES, priority=st.sampled_from(list(Priority)))
def test_a_work_queue_says_its_queue_and_its_priority(queue: str, priority: Priority) -> None:
    work = work_queue(queue, priority)
    assert (queue_of(work), priority_of(work)) == (queue, priority)
    assert is_work_queue(work)
    assert len(work) <= WORK_QUEUE_LENGTH


@given(st.text())
def test_any_text_of_a_row_can_be_read(text: str) -> None:
    queue_of(text), priority_of(text), later(text), is_work_queue(text)


def test_services_and_the_immediate_queue_have_no_priorities() -> None:
    assert work_queues(["standalone", "immediate", "main", "main"]) == (
        "standalone", "immediate", "main.high", "main", "main.low",
    )  # fmt: skip
    assert work_queue() == MAIN
    assert work_queue("immediate", "high") == "immediate"
    assert choice_problem("immediate", "") == choice_problem("immediate", "normal") == ""
    assert "no priorities" in choice_problem("immediate", "low")


def test_a_low_run_waits_at_most_ten_minutes_longer() -> None:
    assert LATER[Priority.HIGH] < LATER[Priority.NORMAL] < LATER[Priority.LOW]
    assert LATER[Priority.LOW] - LATER[Priority.HIGH] == timedelta(minutes=10)
