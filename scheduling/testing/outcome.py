"""RunOutcome: what became of a run that a test has made."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from scheduling.testing.attached import AttachedFile


class OutputLine(NamedTuple):
    """One line that a run has printed or logged.

    Args:
        level: `DEBUG`, `INFO`, `SUCCESS`, `WARN` or `ERROR` for a logged line, `OUT` for a printed one.
        text: the line without its end. Secret parameters are masked.
    """

    level: str
    text: str


@dataclass(frozen=True)
class RunOutcome:
    """What became of one attempt.

    Args:
        handler: the name of the handler. For a report, the name of its controller.
        outcome: `succeeded` or `failed`.
        result: what the handler has returned, as it is stored; None if nothing is stored.
        error: the error that the handler or the check of its params has raised; None if it raised none.
        error_class: the name of the class of the error, as it is stored; empty for a success.
        error_message: the text of the error, as it is stored; empty for a success.
        is_retried: whether the retry policy lets a retry follow.
        progress: the last progress that the handler has reported; empty if it has reported none.
        lines: what the run has printed and logged.
        files: what the run has attached.
        scheduled_at: the due instant, in UTC.
        execution_id: the id of the execution. `run_inline` stores no execution: there it is the given number.
        state: the state of the execution after the attempt; empty after `run_inline`.
    """

    handler: str
    outcome: str
    result: Any
    error: BaseException | None
    error_class: str
    error_message: str
    is_retried: bool
    progress: str
    lines: tuple[OutputLine, ...] = field(repr=False)
    files: tuple[AttachedFile, ...]
    scheduled_at: datetime
    execution_id: int
    attempt: int
    state: str = ""

    @property
    def output(self) -> str:
        """The texts of all lines, each with a line end."""
        return "".join(f"{line.text}\n" for line in self.lines)
