"""Defines `BatchRun`, which tells a batch handler about the runs of its call."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from os import PathLike
from typing import IO, Any, NoReturn

from scheduling.core.outcome import PROGRESS_LENGTH
from scheduling.core.steps import StepError
from scheduling.handlers.run import Run
from scheduling.handlers.steps import Steps
from scheduling.logs import RunLogger


class NoSteps(Steps):
    """The steps of a run that belongs to a batch: it has none."""

    def step(self, *_args: Any, **_options: Any) -> NoReturn:
        """Raise StepError."""
        raise StepError(
            "A batch has no steps: its runs are called together, and each is retried by itself. Give work that must "
            "survive in parts to a worker without batch_size."
        )

    each = atomic = checkpoint = step

    @property
    def cursor(self) -> NoReturn:
        """Raise StepError."""
        self.step()


@dataclass(frozen=True)
class BatchRun:
    """The current call of a batch handler.

    Args:
        runs: the attempts of the batch, in the order of the params. They have no steps.
        log: a logger whose lines are stored with the batch.
    """

    runs: tuple[Run, ...]
    log: RunLogger
    deadline: float | None = field(default=None, repr=False)
    """When the time limit is over, by the monotonic clock."""
    report_progress: Callable[[str], None] = field(default=lambda _text: None, repr=False)
    is_cancelled: Callable[[], bool] = field(default=bool, repr=False)

    @property
    def cancelled(self) -> bool:
        """Whether operators have asked to cancel every run of the batch. A look is cheap: it asks no database."""
        return self.is_cancelled()

    @property
    def time_left(self) -> float | None:
        """The seconds until the time limit ends the batch, at least 0; None if it has no limit."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Show operators the progress of the batch, on the page of each of its runs; see `Run.progress`."""
        text = f"{done:g}" if total is None else f"{done:g}/{total:g}"
        self.report_progress(f"{text} {note}".strip()[:PROGRESS_LENGTH])

    def attach(self, file: str | PathLike[str] | IO[bytes], name: str = "") -> None:
        """Store a file with the first run of the batch; see `Run.attach`. Each of `runs` takes files, too."""
        self.runs[0].attach(file, name)
