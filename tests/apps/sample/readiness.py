"""Workers that are not always ready."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone as clock
from pydantic import BaseModel

from scheduling.handlers import RetryPolicy, Run, Snooze, worker

NEVER = RetryPolicy(max_retries=0)


@worker("tests.snooze", retry=NEVER)
def snooze(params: BaseModel, run: Run) -> str:
    """Is ready in its third attempt."""
    if run.attempt == 1:
        raise Snooze(0.5, reason="the file is not there yet")
    if run.attempt == 2:
        raise Snooze(until=clock.now() - timedelta(hours=1))
    return f"retry {run.retry_count}, last {run.is_last_attempt}"


class AnswerParams(BaseModel):
    """What the function `when` returns. The word "raise" makes it raise."""

    answer: Any = None


def answer(params: AnswerParams, run: Run) -> Any:
    """Returns what the params say."""
    if params.answer == "raise":
        raise LookupError("no folder")
    return params.answer


@worker("tests.when", params=AnswerParams, when=answer, retry=RetryPolicy(max_retries=1, delay_ms=1000))
def when(params: AnswerParams, run: Run) -> str:
    """Tells that it was called."""
    return "called"


@worker("tests.snooze_wrongly", retry=NEVER)
def snooze_wrongly(params: BaseModel, run: Run) -> None:
    """Asks for a snooze without a time."""
    raise Snooze
