"""Running: one attempt in a child, and the rules for how its end is judged."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scheduling.brief import Brief
from scheduling.broker import Delivery
from scheduling.consumer.children import Child
from scheduling.consumer.output import OutputBuffer
from scheduling.core.outcome import Cancelled, Crashed, Failed, Interrupted, Outcome, Succeeded, TimedOut
from scheduling.ledger import Ended


@dataclass(eq=False)
class Running:
    """An attempt that this process owns.

    `deadline` and `kill_at` are on the monotonic clock. `verdict` is why TERM was sent, decided
    before the process ended; it then stands whatever the process does in its last moments.
    """

    delivery: Delivery
    brief: Brief
    output: OutputBuffer
    started_at: datetime
    started_monotonic: float
    consumer: str
    child: Child | None = None
    pid: int | None = None
    deadline: float | None = None
    kill_at: float | None = None
    verdict: Outcome | None = None
    fenced: bool = False
    refusals: int = 0
    unstored: str = ""
    """Output that is taken from the buffer but not committed yet."""
    sequence: int = 0
    progress: str = ""
    shown: tuple[str, int | None] = ("", None)
    """Progress and process id as they stand in the row."""
    answer: dict[str, Any] | None = None
    outcome: Outcome | None = None

    @property
    def execution_id(self) -> int:
        """Key of the execution's row; a started execution has one."""
        assert self.delivery.message.execution_id is not None  # noqa: S101
        return self.delivery.message.execution_id

    @property
    def ended(self) -> Ended:
        """For the ledger."""
        return Ended(self.execution_id, self.delivery.message.attempt, self.started_at, self.consumer, self.pid)

    def task(self) -> dict[str, Any]:
        """What the child is told."""
        message, brief = self.delivery.message, self.brief
        return {
            "type": message.type,
            "handler": brief.handler,
            "target_params": brief.target_params,
            "params": message.params,
            "fresh": brief.fresh,
            "run": {
                "execution_id": message.execution_id,
                "execution_key": message.execution_key,
                "attempt": message.attempt,
                "retry_count": message.retry_count,
                "is_last_attempt": message.retry_count >= brief.policy.max_retries,
                "scheduled_at": (message.scheduled_at or self.started_at).isoformat(),
                "trigger": message.trigger,
                "type": message.type,
                "name": brief.handler,
                "target_id": message.id,
                "scheduler_id": message.scheduler_id,
                "user_id": brief.user_id,
                "language": brief.language,
            },
        }

    def judge(self) -> Outcome:
        """How it ended, from the child's answer, its wait status, and what was done to it."""
        code, number = exit_of(self.child.status if self.child is not None else None)
        verdict = self.verdict
        finished = self.answer is not None and not self.answer.get("terminated")
        if finished and (verdict is None or isinstance(verdict, Interrupted)):
            return from_answer(self.answer or {})
        if isinstance(verdict, TimedOut):
            return TimedOut(verdict.limit, code, number)
        if isinstance(verdict, Cancelled):
            return Cancelled(verdict.by, code, number)
        if isinstance(verdict, Interrupted):
            return Interrupted(code, number)
        if self.answer is not None:
            # Somebody else sent TERM, and the handler was unwound by it.
            return Crashed(code, 15, detail="The child process was asked to end (signal 15) by somebody else.")
        return Crashed(code, number)


def exit_of(status: int | None) -> tuple[int | None, int | None]:
    """A wait status as exit code or signal number; both None while the process lives."""
    if status is None:
        return None, None
    if os.WIFSIGNALED(status):
        return None, os.WTERMSIG(status)
    return os.waitstatus_to_exitcode(status), None


def from_answer(answer: dict[str, Any]) -> Outcome:
    """The outcome a child reported. What it says is data: every field is checked."""
    if answer.get("outcome") == "succeeded":
        return Succeeded(answer.get("result"))
    after = answer.get("retry_after")
    valid = isinstance(after, int | float) and not isinstance(after, bool) and 0 <= after < 1e9
    return Failed(
        error_class=str(answer.get("error_class", "")),
        message=str(answer.get("message", "")),
        traceback=str(answer.get("traceback", "")),
        retryable=bool(answer.get("retryable", True)),
        retry_after_ms=round(after * 1000) if valid and after is not None else None,
    )
