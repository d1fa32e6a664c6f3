"""Defines `Run`, which tells a handler about its own attempt."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from os import PathLike
from types import MappingProxyType
from typing import IO, Any

from scheduling.core.events import Event
from scheduling.core.outcome import PROGRESS_LENGTH
from scheduling.handlers.run_steps import RunSteps
from scheduling.handlers.steps import Steps
from scheduling.logs import RunLogger


def _nowhere(*_values: Any) -> None:
    return None


@dataclass(frozen=True)
class Run(RunSteps):
    """The current attempt, as its handler sees it.

    Args:
        execution_id: primary key of the execution's row.
        attempt: the number of the attempt, from 1. The number is never reused, so it can serve as a fencing token.
        retry_count: the number of this retry, from 1; 0 for a first attempt or after a republish. The environment
            variable `RETRY_COUNT` has the same value.
        is_last_attempt: whether the execution goes to the failed inbox if this attempt fails.
        scheduled_at: the due instant in UTC. In a run of a backfill, it is the past instant that the run is for.
        trigger: `cron`, `date`, `manual`, `message`, `code` or `backfill`.
        user_id: the Scheduler's user, if any.
        group_id: the group of the execution, if any. It is the Scheduler's group at the time of the claim.
        group: the name of this group; None if there is none.
        language: the Scheduler's language, which is already active when the handler starts.
        release: the setting `CRON_RELEASE`, such as `r42`; empty if it is not set.
        headers: read-only texts that accompany the run, from `scheduling.api` or from a message of another program.
        event: the topic and the metadata of the event that a listener is called for; None in other handlers.
        log: a logger whose lines are stored with the attempt. The output of `print` and `logging` is stored too.
        steps: what is finished (`step`, `each`, `checkpoint`). By default, it is kept in memory, for unit tests.
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
    release: str = ""
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    event: Event | None = None
    log: RunLogger = field(default_factory=lambda: RunLogger(logging.getLogger("scheduling.run"), {}))
    deadline: float | None = field(default=None, repr=False)
    """When the time limit is over, by the monotonic clock. All processes of one machine have the same one."""
    report_progress: Callable[[str], None] = field(default=_nowhere, repr=False)
    attach_file: Callable[[Run, str | PathLike[str] | IO[bytes], str], None] = field(default=_nowhere, repr=False)
    is_cancelled: Callable[[], bool] = field(default=bool, repr=False)
    steps: Steps = field(default_factory=Steps, repr=False, compare=False)

    @property
    def idempotency_key(self) -> str:
        """A text for another system that does each request only once. At most 85 ASCII characters.

        It is the same in each attempt, also after a republish. No other execution has it. The id alone would not do:
        after a restore, a database gives ids again. Nor would the execution key: it is unique within its schedule.
        """
        return f"{self.execution_id}-{self.execution_key}"

    @property
    def cancelled(self) -> bool:
        """Whether an operator has asked to cancel this run. A look is cheap: it asks no database.

        A handler that looks at it gets five seconds to end by itself. After that, and at once in a handler that never
        looks, an exception interrupts the handler.
        """
        return self.is_cancelled()

    def attach(self, file: str | PathLike[str] | IO[bytes], name: str = "") -> None:
        """Store a file with the run. Operators can download it from the page of the execution.

        Call this outside of `transaction.atomic`. In a unit test, a Run without a child stores nothing.

        Args:
            file: a path, or a binary file. A file is read from its beginning, and stays open.
            name: the name of the stored file, at most 100 characters; empty: the name of the file. Unsafe characters
                are removed.

        Raises:
            scheduling.handlers.AttachmentError: the file cannot be stored with this run. Its text says why.
            FencedOff: another process owns this execution by now. It is no `Exception`: do not catch it.
            Exception: the storage or the database failed.
        """
        self.attach_file(self, file, name)

    @property
    def time_left(self) -> float | None:
        """The seconds until the time limit ends the run, at least 0; None if the run has no limit."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Show operators the progress of the run. The call is cheap, so a handler may call this method often.

        Args:
            done: how much is done, such as a number of rows.
            total: how much there is to do, if known.
            note: a short text; the whole progress text is cut to 64 characters.
        """
        text = f"{done:g}" if total is None else f"{done:g}/{total:g}"
        self.report_progress(f"{text} {note}".strip()[:PROGRESS_LENGTH])


def run_from(message: dict[str, Any], log: RunLogger, **ways: Any) -> Run:
    """Build a Run from the message that the consumer sends to its child.

    Args:
        ways: the functions through which the run reaches its child, such as `report_progress`.
    """
    facts = dict(message)
    facts["scheduled_at"] = datetime.fromisoformat(facts["scheduled_at"])
    facts["headers"] = MappingProxyType(facts["headers"])
    return Run(**facts, log=log, **ways)
