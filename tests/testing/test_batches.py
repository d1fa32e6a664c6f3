"""`run_inline` and `drain` call a batch handler with many runs, as a consumer does."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import TestCase

from scheduling.api import Asked, run, run_many
from scheduling.core.batch import WrongResultCount
from scheduling.core.outcome import NonRetryableError
from scheduling.handlers.params import ParamsInvalid
from scheduling.models import Attempt, SchedulerExecution
from scheduling.testing import drain, run_inline, travel
from tests.apps.sample.batches import ItemParams, each_by_itself


def test_a_list_of_params_is_one_call_with_an_outcome_for_each() -> None:
    found = run_inline(each_by_itself, [{"value": 7}, ItemParams(ends="never"), {"ends": "retry"}, {"ends": 5}])
    assert [(one.outcome, one.result, one.is_retried, one.execution_id) for one in found] == [
        ("succeeded", 7, False, 1), ("failed", None, False, 2), ("failed", None, True, 3), ("failed", None, False, 4),
    ]  # fmt: skip
    assert isinstance(found[1].error, NonRetryableError)
    assert isinstance(found[3].error, ParamsInvalid)
    assert {one.output for one in found} == {"got 3: [1, 2, 3]\n"}
    assert found[3].progress == "3/3"
    with pytest.raises(NonRetryableError):
        run_inline(each_by_itself, [{"ends": "never"}], raise_errors=True)


def test_params_that_are_no_list_are_a_batch_of_one() -> None:
    found = run_inline("tests.batch", {"value": "x"})
    assert (found.outcome, found.result, found.output) == ("succeeded", "x", "got 1: [1]\n")


def test_an_error_of_the_call_is_that_of_each_run() -> None:
    for found in run_inline("tests.batch_miscounts", [{}, {}]):
        assert (found.outcome, found.is_retried) == ("failed", False)
        assert isinstance(found.error, WrongResultCount)
    assert [one.is_retried for one in run_inline("tests.batch_raises", [{}, {}])] == [True, True]


@pytest.mark.parametrize(
    ("handler", "params", "words"),
    [
        ("tests.noop", [{}], "has no batch_size"),
        ("tests.batch", [], "from 1 to 10 runs, not 0"),
        ("tests.batch", [{}] * 11, "from 1 to 10 runs, not 11"),
    ],
)
def test_a_list_that_is_no_batch_is_refused(handler: str, params: list[Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        run_inline(handler, params)


class DrainTest(TestCase):
    """`drain` and `travel`."""

    def test_due_runs_of_one_handler_are_called_together_up_to_its_size(self) -> None:
        made = run_many([Asked("tests.batch", {"value": number}) for number in range(12)])
        other = run("tests.noop")
        found = drain()
        assert {one.execution_id: one.result for one in found} == {
            other.id: None, **{one.id: number for number, one in enumerate(made)},
        }  # fmt: skip
        sizes = [one.batch_size for one in Attempt.objects.exclude(batch_size=None).order_by("execution_id")]
        assert sizes == [10] * 10 + [2] * 2
        assert set(SchedulerExecution.objects.values_list("state", flat=True)) == {"succeeded"}

    def test_a_batch_that_raises_is_retried_together(self) -> None:
        with travel("2026-03-10T12:00Z") as clock:
            run_many([Asked("tests.batch_raises")] * 3)
            assert [one.is_retried for one in drain(raise_errors=False)] == [True] * 3
            again = clock.forward(timedelta(minutes=1), raise_errors=False)
        assert [(one.attempt, one.state) for one in again] == [(2, "retrying")] * 3 + [(3, "failed")] * 3
        assert set(Attempt.objects.values_list("batch_size", flat=True)) == {3}
        leaders = set(Attempt.objects.values_list("batch_leader", "batch_attempt"))
        assert sorted(leaders) == [(again[0].execution_id, number) for number in (1, 2, 3)]
