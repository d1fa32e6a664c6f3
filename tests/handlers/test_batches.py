"""A worker with `batch_size` is registered with its own signature and its own `Run`."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from scheduling.core.batch import Batching
from scheduling.handlers import BatchRun, RegistryError, Run, StepError, find, worker
from scheduling.testing import run_inline


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
