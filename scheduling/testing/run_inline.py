"""Runs a handler in the process of a test, without a database row, a child, a socket or a broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypedDict, Unpack, overload

from django.utils import timezone as clock
from pydantic import BaseModel

from scheduling.broker import Delivery
from scheduling.core.lifecycle import Trigger
from scheduling.core.messages import TaskMessage
from scheduling.core.outcome import Failed
from scheduling.core.retry import Retry, decide
from scheduling.execution.params_from_code import storable
from scheduling.handlers import Handler
from scheduling.handlers.params_model import stored
from scheduling.handlers.retry_policy import retry_policy
from scheduling.handlers.run_config import RunConfig
from scheduling.handlers.steps import MemoryLedger
from scheduling.testing.attached import MemoryFiles
from scheduling.testing.handler_reference import meant
from scheduling.testing.inline_run import InlineRun
from scheduling.testing.outcome import RunOutcome

Params = Mapping[str, Any] | BaseModel


class Options(TypedDict, total=False):
    """The options of `run_inline`."""

    retry_count: int
    scheduled_at: datetime | None
    execution_id: int
    language: str
    raise_errors: bool


@overload
def run_inline(handler: Any, params: Params | None = None, **options: Unpack[Options]) -> RunOutcome: ...


@overload
def run_inline(handler: Any, params: Sequence[Params], **options: Unpack[Options]) -> list[RunOutcome]: ...


def run_inline(
    handler: Any,
    params: Params | Sequence[Params] | None = None,
    *,
    retry_count: int = 0,
    scheduled_at: datetime | None = None,
    execution_id: int = 1,
    language: str = "",
    raise_errors: bool = False,
) -> RunOutcome | list[RunOutcome]:
    """Run a worker once, now, and tell what a consumer would record. No row is written for the run.

    Args:
        handler: the name of the worker, or its function.
        params: the params of the run, as a mapping or as an instance of the params model. The params of the worker's
            row are not read. A list has the params of all runs of a batch; the result is then a list, too.
        retry_count: the number of the retry that the handler sees; 0 for a first attempt.
        scheduled_at: the due instant that the handler sees; None means now.
        execution_id: the id that the handler sees; the further runs of a batch have the next ids.
        language: the language of the schedule.
        raise_errors: whether to raise what the handler, or the check of its params, has raised.

    Raises:
        UnknownHandler: no worker is registered under this name in this process.
        ValueError: the params are not JSON, or are a list that is empty, is longer than `batch_size` or is for a worker
            without it; or `handler` is a report. Run a report with `drain`.
    """
    known = meant(handler)
    if known.type != "worker":
        raise ValueError(f"{known.name!r} is a {known.type}: only drain() runs it, because it needs an execution.")
    is_batch = isinstance(params, Sequence)
    every = list(params) if isinstance(params, Sequence) else [params or {}]
    if is_batch:
        _check_batch(known, len(every))
    now, policy = clock.now(), retry_policy(known, None)
    message = TaskMessage(
        type=known.type, id=1, scheduler_id=None, execution_id=execution_id,
        attempt=retry_count + 1, execution_key="inline", scheduled_at=scheduled_at or now,
        trigger=Trigger.MANUAL.value, retry_count=retry_count,
    )  # fmt: skip
    deliveries = [
        Delivery(replace(message, params=_storable(known, given), execution_id=execution_id + number))
        for number, given in enumerate(every)
    ]
    config = RunConfig(handler=known.name, policy=policy, language=language, batch=known.batch)
    run = InlineRun(deliveries, config, now, MemoryLedger(), MemoryFiles())
    run.call()
    found = []
    for number, ended in enumerate(each.outcome for each in run.runs):
        retried = isinstance(ended, Failed) and isinstance(decide(policy, retry_count, ended), Retry)
        found.append(run.outcome(number, "", is_retried=retried))
    errors = [outcome.error for outcome in found if outcome.error is not None]
    if raise_errors and errors:
        raise errors[0]
    return found if is_batch else found[0]


def _storable(known: Handler, given: Params) -> dict[str, Any]:
    return storable(known.name, stored(given) if isinstance(given, BaseModel) else given)


def _check_batch(known: Handler, count: int) -> None:
    if known.batch is None:
        raise ValueError(f"{known.name!r} has no batch_size: a call of it gets the params of one run.")
    if not 1 <= count <= known.batch.size:
        raise ValueError(f"A batch of {known.name!r} has from 1 to {known.batch.size} runs, not {count}.")
