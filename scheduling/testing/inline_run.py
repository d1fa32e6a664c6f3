"""Runs one attempt, or those of one batch, in this process as a child does, and judges them as the consumer does."""

from __future__ import annotations

import contextvars
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any

from django.db import transaction

from scheduling.broker import Delivery
from scheduling.conf import get_conf
from scheduling.consumer import framing
from scheduling.consumer.batch import Batch, Shared
from scheduling.consumer.child import call_handler
from scheduling.consumer.child_answers import packed
from scheduling.consumer.output import OutputBuffer
from scheduling.consumer.progress import ProgressLimit
from scheduling.consumer.running import Running
from scheduling.consumer.secret_filter import SecretFilter, secret_texts
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
    """An attempt that this process has started, or all attempts of one batch.

    Args:
        deliveries: one delivery; several only for a batch handler.
        started_at: when it was started.
        ledger: stores the steps of the run. A batch has no steps.
        files: stores what the run attaches. The files of a batch belong to its first run.
    """

    def __init__(
        self,
        deliveries: Sequence[Delivery],
        config: RunConfig,
        started_at: datetime,
        ledger: Ledger,
        files: MemoryFiles,
    ) -> None:
        self._files = files
        self._lines: list[OutputLine] = []
        self._watch, self._steps = _Watch(), Steps(ledger)
        limit, texts = get_conf().output_max_bytes, list[str]()
        for delivery in deliveries:
            texts += secret_texts(delivery.message, config)
        self.runs = [
            Running(
                delivery,
                config,
                OutputBuffer(limit, None if number else self._keep_line, SecretFilter(texts) if texts else None),
                started_at,
                container_id(),
                pid=os.getpid(),
            )
            for number, delivery in enumerate(deliveries)
        ]
        self.running = self.runs[0]
        if config.batch is not None:
            batch = Batch(Shared.of(deliveries[0].message, config, deliveries[0].queue), config.batch, until=0.0)
            for run in self.runs:
                batch.add(run)
            batch.called = True

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
        if run.batch is not None:
            run.batch.share_end()
        for member in self.runs:
            member.outcome = member.judge()
        run.unstored += run.output.finish(time.time())  # an unfinished line is a line, too

    def outcome(self, number: int, state: str, *, is_retried: bool) -> RunOutcome:
        """What became of one of the attempts. Call it after `call`.

        Args:
            number: the number of the delivery, from 0.
            state: the state of the execution after the attempt; empty if there is no execution.
        """
        run = self.runs[number]
        message, error = run.delivery.message, self._watch.of_members.get(number) or self._watch.error
        assert run.outcome is not None  # noqa: S101 - the handler was called
        return RunOutcome(
            handler=run.config.handler,
            outcome=run.outcome.name,
            result=decode(run.outcome.result),
            error=error if run.outcome.name == "failed" else None,
            error_class=getattr(run.outcome, "error_class", ""),
            error_message=getattr(run.outcome, "message", ""),
            is_retried=is_retried,
            progress=run.progress,
            lines=tuple(self._lines),
            files=() if number else tuple(self._files.found),
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
