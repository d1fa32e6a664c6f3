"""Calls a handler in its surroundings: environment variables, language and soft time limit."""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from django.utils import translation

from scheduling.consumer import coroutine
from scheduling.consumer.soft_limit import soft_time_limit
from scheduling.handlers import Handler
from scheduling.logs import RunLogger


@contextmanager
def surroundings(facts: Mapping[str, Any]) -> Iterator[RunLogger]:
    """Set what a handler finds in its process; yields the logger of the run.

    Args:
        facts: the facts of the run. For a batch, those of its first run.
    """
    os.environ["RETRY_COUNT"] = str(facts["retry_count"])
    os.environ["CRON_EXECUTION_ID"] = str(facts["execution_id"])
    language = facts.get("language")
    # Without a language, the run has the site's LANGUAGE_CODE: `override(None)` would switch translation off.
    with translation.override(language) if language else nullcontext():
        yield RunLogger(logging.getLogger("scheduling.run"), {})


def call(handler: Handler, params: Any, run: Any) -> Any:
    """Call the handler; returns what it returns, also if it is an `async def` function."""
    limit = handler.soft_time_limit
    with soft_time_limit(limit):
        result = handler.call(params, run)
    return coroutine.run_coroutine(result, limit) if inspect.iscoroutine(result) else result
