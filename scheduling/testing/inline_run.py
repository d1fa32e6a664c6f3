"""Runs one attempt in this process, as a child of a consumer does, and judges it as the consumer does."""

from __future__ import annotations

import contextvars
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any

from django.db import transaction

from scheduling.broker import Delivery
from scheduling.conf import get_conf
from scheduling.consumer import framing
from scheduling.consumer.child import call_handler
from scheduling.consumer.child_answers import packed
from scheduling.consumer.output import OutputBuffer
from scheduling.consumer.progress import ProgressLimit
from scheduling.consumer.running import Running
from scheduling.consumer.secret_filter import secrets_of
from scheduling.core.results import decode
from scheduling.execution.steps import DatabaseLedger
from scheduling.handlers.run_config import RunConfig
from scheduling.handlers.steps import Ledger, Steps
from scheduling.processes.identity import container_id
from scheduling.testing.attached import MemoryFiles
from scheduling.testing.capture import captured, kept_environment
from scheduling.testing.outcome import OutputLine, RunOutcome
from scheduling.testing.transactions import usable_afterwards


class _Watch(AbstractContextManager[None]):
    """Remembers the error that ends the call, and those of single runs of a batch by their numbers."""

    error: BaseException | None = None

    def __init__(self) -> None:
        self.of_members: dict[int, BaseException] = {}

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.error = self.error or error  # around the call of a batch, there is a second block

    def ends_member(self, number: int, error: BaseException) -> None:
        """Remember the error with which one run of a batch ends."""
        self.of_members[number] = error


class InlineLedger(DatabaseLedger):
    """Stores the steps of an execution inside the transaction of a test."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A savepoint: the transaction of the test is the outermost one."""
        with transaction.atomic():
            yield


class InlineRun:
    """An attempt that this process has started.

    Args:
        started_at: when it was started.
        ledger: stores the steps of the run.
        files: stores what the run attaches.
    """

    def __init__(
        self, delivery: Delivery, config: RunConfig, started_at: datetime, ledger: Ledger, files: MemoryFiles
    ) -> None:
        self._files = files
        self._lines: list[OutputLine] = []
        secrets = secrets_of(delivery.message, config)
        output = OutputBuffer(get_conf().output_max_bytes, self._keep_line, secrets)
        self.running = Running(delivery, config, output, started_at, container_id(), pid=os.getpid())
        self._watch, self._steps = _Watch(), Steps(ledger)

    def call(self) -> None:
        """Call the handler. No error of the handler leaves this method.

        Raises:
            KeyboardInterrupt: the test was interrupted, or the handler has raised it.
        """
        run = self.running
        task = _received(framing.pack(run.task()))
        progress = ProgressLimit(run.show_progress)
        ways = {"report_progress": progress.report, "steps": self._steps, "attach_file": self._files.attach}
        with usable_afterwards(), kept_environment(), captured(lambda data: run.output.feed(data, time.time())):
            answer = contextvars.copy_context().run(call_handler, task, ways, self._watch)
        if isinstance(self._watch.error, KeyboardInterrupt):
            raise self._watch.error
        run.show_progress(progress.unsent)
        run.answer = _received(packed(answer, task))
        run.outcome = run.judge()
        run.unstored += run.output.finish(time.time())  # an unfinished line is a line, too

    def outcome(self, state: str, *, is_retried: bool) -> RunOutcome:
        """What became of it. Call it after `call`.

        Args:
            state: the state of the execution after the attempt; empty if there is no execution.
        """
        run, message = self.running, self.running.delivery.message
        assert run.outcome is not None  # noqa: S101 - the handler was called
        return RunOutcome(
            handler=run.config.handler,
            outcome=run.outcome.name,
            result=decode(run.outcome.result),
            error=self._watch.error if run.outcome.name == "failed" else None,
            error_class=getattr(run.outcome, "error_class", ""),
            error_message=getattr(run.outcome, "message", ""),
            is_retried=is_retried,
            progress=run.progress,
            lines=tuple(self._lines),
            files=tuple(self._files.found),
            scheduled_at=message.scheduled_at or run.started_at,
            execution_id=run.execution_id,
            attempt=message.attempt,
            state=state,
        )

    def _keep_line(self, level: str, text: str) -> None:
        self._lines.append(OutputLine(level, text))


def _received(frame: bytes) -> dict[str, Any]:
    """The message as the other side of the channel would read it."""
    (message,) = framing.FrameReader().feed(frame)
    return message
