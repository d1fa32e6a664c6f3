"""A worker with `batch_size` is registered with its own signature and its own `Run`."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone as clock
from pydantic import BaseModel

from scheduling.broker import Delivery
from scheduling.consumer.child import call_handler
from scheduling.consumer.output import OutputBuffer
from scheduling.consumer.running import Running
from scheduling.core.batch import Batching
from scheduling.core.messages import TaskMessage
from scheduling.handlers import BatchRun, RegistryError, Run, StepError, find, worker
from scheduling.handlers.run_config import RunConfig
from scheduling.testing import run_inline
from scheduling.testing.capture import kept_environment


def usual(batch: list[Any], run: Any) -> None:
    """Can be a batch handler."""


def takes_run(batch: list[Any], run: Run) -> None:
    """Takes the wrong run."""


def takes_batch_run(params: BaseModel, run: BatchRun) -> None:
    """Takes the wrong run, too."""


REFUSED = {
    "small": (usual, {"batch_size": 1}, "'tests.x': batch_size is a whole number from 2 to 1,000, not 1."),
    "large": (usual, {"batch_size": 1001}, "from 2 to 1,000, not 1001."),
    "wait": (usual, {"batch_size": 10, "batch_wait": 61}, "batch_wait is a number of seconds from 0 to 60, not 61."),
    "only wait": (usual, {"batch_wait": 1}, "batch_wait is for a worker with batch_size."),
    "when": (usual, {"batch_size": 10, "when": bool}, "when is asked for one run"),
    "no argument": (lambda: None, {"batch_size": 10}, "must accept two arguments: (batch, run)."),
    "run": (takes_run, {"batch_size": 10}, "takes a Run. With batch_size, its two arguments are (batch, run)"),
    "batch run": (takes_batch_run, {}, "takes a BatchRun. Without batch_size, its two arguments are (params, run)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_used_is_refused_with_a_sentence(name: str) -> None:
    function, options, words = REFUSED[name]
    with pytest.raises(RegistryError) as caught:
        worker("tests.x", **options)(function)
    assert words in str(caught.value)


def test_the_handler_has_its_rules() -> None:
    assert find("worker", "tests.batch").batch == Batching(10, 0.3)
    assert find("worker", "tests.batch_nothing").batch == Batching(100, 1.0)
    assert find("worker", "tests.noop").batch is None


@pytest.mark.parametrize(
    ("params", "outcome", "message"),
    [
        ({"value": 5}, "succeeded", ""),
        ({"ends": "never"}, "failed", "the order is closed"),
        ({"ends": 5}, "failed", "ends: must be a text"),
    ],
)
def test_a_service_is_called_with_a_list_of_one(params: dict[str, Any], outcome: str, message: str) -> None:
    """Its schedule has become a service before the handler has become a batch handler."""
    delivery = Delivery(TaskMessage(type="worker", id=1, execution_id=1, params=params))
    run = Running(delivery, RunConfig("tests.batch", service=True), OutputBuffer(1000), clock.now(), "one")
    with kept_environment():
        run.answer = call_handler(run.task(), {})
    ended = run.judge()
    assert (ended.name, getattr(ended, "message", "")) == (outcome, message)
    assert ended.result == ("5" if outcome == "succeeded" else "")


def test_a_run_of_a_batch_has_no_steps() -> None:
    seen: list[str] = []

    @worker("tests.batch_without_steps", batch_size=5)
    def tries(batch: list[BaseModel], run: BatchRun) -> None:
        one = run.runs[1]
        for call in (
            lambda: one.step("a", int),
            lambda: one.checkpoint(1),
            lambda: one.cursor,
            one.atomic,
            lambda: one.each(None, int),  # type: ignore[arg-type]
        ):
            with pytest.raises(StepError, match="A batch has no steps"):
                call()
            seen.append("refused")
        assert not one.stopping
        assert (run.cancelled, run.time_left) == (False, None)

    run_inline(tries, [{}, {}], raise_errors=True)
    assert seen == ["refused"] * 5
