"""Defines `Run`, which tells a handler about its own attempt."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from scheduling.core.outcome import PROGRESS_LENGTH
from scheduling.logs import RunLogger


def _nowhere(_text: str) -> None:
    return None


@dataclass(frozen=True)
class Run:
    """The current attempt, as its handler sees it.

    Args:
        execution_id: primary key of the execution's row.
        attempt: the number of the attempt, from 1. The number is never reused, so it can serve as a fencing token.
        retry_count: the number of this retry, from 1; 0 for a first attempt or after a republish. The environment
            variable `RETRY_COUNT` has the same value.
        is_last_attempt: whether the execution goes to the failed inbox if this attempt fails.
        scheduled_at: the due instant in UTC.
        trigger: `cron`, `date`, `manual` or `message`.
        user_id: the Scheduler's user, if any.
        group_id: the group of the execution, if any. It is the Scheduler's group at the time of the claim.
        group: the name of this group; None if there is none.
        language: the Scheduler's language, which is already active when the handler starts.
        log: a logger whose lines are stored with the attempt. The output of `print` and `logging` is stored too.
    """

    execution_id: int
    execution_key: str
    attempt: int
    retry_count: int
    is_last_attempt: bool
    scheduled_at: datetime
    trigger: str = "manual"
    type: str = "worker"
    name: str = ""
    target_id: int | None = None
    scheduler_id: int | None = None
    user_id: int | None = None
    group_id: int | None = None
    group: str | None = None
    language: str = ""
    log: RunLogger = field(default_factory=lambda: RunLogger(logging.getLogger("scheduling.run"), {}))
    report_progress: Callable[[str], None] = field(default=_nowhere, repr=False)

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Show operators the progress of the run. The call is cheap, so a handler may call this method often.

        Args:
            done: how much is done, such as a number of rows.
            total: how much there is to do, if known.
            note: a short text; the whole progress text is cut to 64 characters.
        """
        text = f"{done:g}" if total is None else f"{done:g}/{total:g}"
        self.report_progress(f"{text} {note}".strip()[:PROGRESS_LENGTH])


def run_from(message: dict[str, Any], log: RunLogger, report_progress: Callable[[str], None]) -> Run:
    """Build a Run from the message that the consumer sends to its child."""
    facts = dict(message)
    facts["scheduled_at"] = datetime.fromisoformat(facts["scheduled_at"])
    return Run(**facts, log=log, report_progress=report_progress)
