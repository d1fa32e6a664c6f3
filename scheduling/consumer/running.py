"""A running attempt, and the rules that turn its end into an outcome."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from scheduling.broker import Delivery
from scheduling.conf import get_conf
from scheduling.consumer.forked_child import Child
from scheduling.consumer.notices import HANDED_BACK, STOP, notice
from scheduling.consumer.output import OutputBuffer
from scheduling.core.json_bounds import HIGH
from scheduling.core.outcome import (
    PROGRESS_LENGTH,
    Cancelled,
    Crashed,
    Failed,
    Interrupted,
    MemoryLimit,
    Outcome,
    Skipped,
    Snoozed,
    Succeeded,
    TimedOut,
)
from scheduling.core.results import masked_result
from scheduling.core.run_sentences import ASKED_TO_END
from scheduling.core.skip_reasons import not_needed
from scheduling.core.snooze import NOT_READY, bounded_wait
from scheduling.core.text import clean, one_line
from scheduling.execution.transitions import Ended
from scheduling.handlers.run_config import RunConfig

REASON_LENGTH = 1_000
"""At most so many characters of the reason of a snooze or a skip are stored."""


@dataclass(eq=False)
class Running:
    """An attempt that this process owns.

    `deadline`, `end_at` and `kill_at` are monotonic times. `verdict` is the reason why this process ends the
    run. The verdict is set before the child gets a signal and does not change afterwards.
    """

    delivery: Delivery
    config: RunConfig
    output: OutputBuffer
    started_at: datetime
    consumer: str
    child: Child | None = None
    pid: int | None = None
    deadline: float | None = None
    end_at: float | None = None
    """When a cancelled run is ended whose handler may still end by itself; otherwise None."""
    watches_cancel: bool = False
    """Whether the handler has looked at `run.cancelled`."""
    kill_at: float | None = None
    verdict: Outcome | None = None
    fenced: bool = False
    stop_announced: bool = False
    """Whether the child was told that the consumer stops, so that it may hand the run back."""
    unstored: str = ""
    """Output that was taken from the buffer but is not committed yet."""
    sequence: int = 0
    """The number of the next output row of this attempt."""
    progress: str = ""
    shown: tuple[str, int | None] = ("", None)
    """The progress and the process id that were last written to the row."""
    left: str = ""
    """Names the processes that this run has left running; empty if they end with the run."""
    answer: dict[str, Any] | None = None
    outcome: Outcome | None = None
    batch: Any = None
    """The `Batch` to which the run belongs; None if it is called by itself."""

    @property
    def execution_id(self) -> int:
        """The id of the execution's row. Every started execution has a row."""
        assert self.delivery.message.execution_id is not None  # noqa: S101
        return self.delivery.message.execution_id

    @property
    def label(self) -> str:
        """The run's name in log lines, such as `[Report:RefreshUserToken:12345]`."""
        return label_of(self.delivery.message.type, self.config.handler, self.execution_id)

    def hear(self, frame: dict[str, Any]) -> None:
        """Take over what the child says during the run."""
        if frame["op"] == "watches":
            self.watches_cancel = True
        else:
            self.show_progress(frame.get("text"))

    def show_progress(self, text: object) -> None:
        """Take over the progress that the child has sent; an empty text changes nothing."""
        if text:
            self.progress = clean(self.output.masked(str(text)), PROGRESS_LENGTH)
            for run in self.batch.members if self.batch is not None else ():
                run.progress = self.progress

    def give_up_output(self) -> None:
        """Forget the output that is not stored yet, because the database refuses it."""
        self.unstored = ""
        if self.output.tail is not None:
            self.output.tail.mark_stored()

    @property
    def ended(self) -> Ended:
        """The attempt in the form that `transitions.settle` needs."""
        attempt = self.delivery.message.attempt
        return Ended(
            self.execution_id, attempt, self.started_at, self.consumer, self.pid, self.progress,
            release=get_conf().release, cpu_ms=self._figure("cpu_ms"), peak_memory_kb=self._figure("peak_memory_kb"),
            batch=self.batch.link if self.batch is not None else None,
        )  # fmt: skip

    def _figure(self, name: str) -> int | None:
        """A figure that the child has reported; None if it has not, because it was killed, or if it is no figure."""
        value = (self.answer or {}).get(name)
        return value if type(value) is int and 0 <= value <= HIGH else None

    def task(self) -> dict[str, Any]:
        """The message that starts the run in the child, as JSON data."""
        message, config = self.delivery.message, self.config
        return {
            "type": message.type,
            "handler": config.handler,
            "target_params": config.target_params,
            "params": message.params,
            "fresh": config.fresh,
            "leaves_processes": config.leaves_processes,
            "run": self.facts(),
            **(self.batch.tasks() if self.batch is not None else {}),
        }

    def facts(self) -> dict[str, Any]:
        """What the handler may know about the run, as JSON data."""
        message, config = self.delivery.message, self.config
        return {
            "execution_id": message.execution_id,
            "execution_key": message.execution_key,
            "attempt": message.attempt,
            "retry_count": message.retry_count,
            "is_last_attempt": not config.service and message.retry_count >= config.policy.max_retries,
            "scheduled_at": (message.scheduled_at or self.started_at).isoformat(),
            "deadline": self.deadline,
            "trigger": message.trigger,
            "type": message.type,
            "name": config.handler,
            "target_id": message.id,
            "scheduler_id": message.scheduler_id,
            "user_id": config.user_id,
            "group_id": message.group_id,
            "group": config.group,
            "language": config.language,
            "release": get_conf().release,
            "headers": message.headers,
        }

    def announce_stop(self) -> None:
        """Tell the child once that the consumer stops. A run without a child is told later."""
        if self.child is not None and not self.stop_announced:
            self.stop_announced = True
            with suppress(OSError):  # the child has ended
                self.child.send(notice(STOP, self.execution_id, self.delivery.message.attempt))

    def is_named_by(self, frame: dict[str, Any]) -> bool:
        """Whether the child's message names this execution and attempt."""
        return (frame.get("execution_id"), frame.get("attempt")) == (self.execution_id, self.delivery.message.attempt)

    def judge(self) -> Outcome:
        """Decide the outcome from the child's answer, the child's wait status and the verdict of this process."""
        code, number = exit_of(self.child.status if self.child is not None else None)
        verdict = self.verdict
        finished = self.answer is not None and not self.answer.get("terminated")
        if self.config.service and isinstance(verdict, Interrupted):
            # A service that was asked to end may return. Its work is not over, so another consumer takes it.
            return replace(verdict, exit_code=code, signal=number)
        if finished and (verdict is None or isinstance(verdict, Interrupted)):
            if self.stop_announced and (self.answer or {}).get("outcome") == HANDED_BACK:
                return Interrupted(exit_code=0)
            return from_answer(self.answer or {}, self.output.masked)
        if isinstance(verdict, TimedOut | MemoryLimit | Cancelled | Interrupted):
            return replace(verdict, exit_code=code, signal=number)
        if self.answer is not None:
            # Another process sent SIGTERM, and `Terminated` interrupted the handler.
            detail = ASKED_TO_END.format()
            return Crashed(exit_code=code, signal=15, detail=detail)
        return Crashed(exit_code=code, signal=number)


def label_of(type_: str, handler: str, execution_id: int | None) -> str:
    """The name of a run in log lines."""
    return f"[{type_.capitalize()}:{handler}:{execution_id}]"


def exit_of(status: int | None) -> tuple[int | None, int | None]:
    """Split a wait status into (exit code, signal number). Both are None if `status` is None."""
    if status is None:
        return None, None
    if os.WIFSIGNALED(status):
        return None, os.WTERMSIG(status)
    return os.waitstatus_to_exitcode(status), None


def from_answer(answer: dict[str, Any], masked: Callable[[str], str] = str) -> Outcome:
    """Read the outcome that a child reported. Every field is checked, because handlers can write to the channel too.

    Args:
        masked: masks secret parameters in a text.
    """
    if answer.get("outcome") == "succeeded":
        return Succeeded(masked_result(answer.get("result"), masked), _exit_code(answer, 0))
    if answer.get("outcome") in ("snoozed", "skipped"):
        reason = clean(one_line(masked(str(answer.get("message", "")))), REASON_LENGTH)
        if answer["outcome"] == "skipped":
            return Skipped(reason or not_needed(""), _exit_code(answer, 0))
        return Snoozed(reason or NOT_READY, bounded_wait(answer.get("wait")), _exit_code(answer, 0))
    after = answer.get("retry_after")
    valid = isinstance(after, int | float) and not isinstance(after, bool) and 0 <= after < 1e9
    return Failed(
        error_class=str(answer.get("error_class", "")),
        message=masked(str(answer.get("message", ""))),
        traceback=masked(str(answer.get("traceback", ""))),
        retryable=bool(answer.get("retryable", True)),
        retry_after_ms=round(after * 1000) if valid and after is not None else None,
        exit_code=_exit_code(answer, 1),
        called=answer.get("called") is not False,
    )


def _exit_code(answer: dict[str, Any], usual: int) -> int:
    code = answer.get("exit_code")
    return code if type(code) is int and 0 <= code <= 255 else usual
