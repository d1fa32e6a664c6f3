"""Runs a handler in the process of a test, without a database row, a child, a socket or a broker."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone as clock
from pydantic import BaseModel

from scheduling.broker import Delivery
from scheduling.core.lifecycle import Trigger
from scheduling.core.messages import TaskMessage
from scheduling.core.outcome import Failed
from scheduling.core.retry import Retry, decide
from scheduling.execution.params_from_code import storable
from scheduling.handlers.params_model import stored
from scheduling.handlers.retry_policy import retry_policy
from scheduling.handlers.run_config import RunConfig
from scheduling.handlers.steps import MemoryLedger
from scheduling.testing.attached import MemoryFiles
from scheduling.testing.handler_reference import meant
from scheduling.testing.inline_run import InlineRun
from scheduling.testing.outcome import RunOutcome


def run_inline(
    handler: Any,
    params: Mapping[str, Any] | BaseModel | None = None,
    *,
    retry_count: int = 0,
    scheduled_at: datetime | None = None,
    execution_id: int = 1,
    language: str = "",
    raise_errors: bool = False,
) -> RunOutcome:
    """Run a worker once, now, and tell what a consumer would record. No row is written for the run.

    Args:
        handler: the name of the worker, or its function.
        params: the params of the run, as a mapping or as an instance of the params model. The params of the worker's
            row are not read.
        retry_count: the number of the retry that the handler sees; 0 for a first attempt.
        scheduled_at: the due instant that the handler sees; None means now.
        execution_id: the id that the handler sees.
        language: the language of the schedule.
        raise_errors: whether to raise what the handler, or the check of its params, has raised.

    Raises:
        UnknownHandler: no worker is registered under this name in this process.
        ValueError: the params are not JSON, or `handler` is a report. Run a report with `drain`.
    """
    known = meant(handler)
    if known.type != "worker":
        raise ValueError(f"{known.name!r} is a {known.type}: only drain() runs it, because it needs an execution.")
    given = stored(params) if isinstance(params, BaseModel) else params or {}
    now, policy = clock.now(), retry_policy(known, None)
    message = TaskMessage(
        type=known.type, id=1, scheduler_id=None, params=storable(known.name, given), execution_id=execution_id,
        attempt=retry_count + 1, execution_key="inline", scheduled_at=scheduled_at or now,
        trigger=Trigger.MANUAL.value, retry_count=retry_count,
    )  # fmt: skip
    config = RunConfig(handler=known.name, policy=policy, language=language)
    run = InlineRun(Delivery(message), config, now, MemoryLedger(), MemoryFiles())
    run.call()
    ended = run.running.outcome
    retried = isinstance(ended, Failed) and isinstance(decide(policy, retry_count, ended), Retry)
    found = run.outcome("", is_retried=retried)
    if raise_errors and found.error is not None:
        raise found.error
    return found
