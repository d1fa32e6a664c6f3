"""Masks the secret parameters of a run in what its process logs, before any log handler of the project gets it.

The consumer masks the output, the error and the progress. A file, a mail or a collector of errors gets its log records
in the child, so they are masked where they are made.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from scheduling.consumer.child_batch import members_of
from scheduling.consumer.secret_filter import SecretFilter, texts_of
from scheduling.handlers.params import merge
from scheduling.handlers.targets import handler_named
from scheduling.logs import error_elsewhere

_PLAIN = logging.Formatter()


@contextmanager
def masked_log(task: dict[str, Any]) -> Iterator[None]:
    """Mask the secrets of the task's runs in all log records that are made inside, in each thread."""
    secrets = _secrets_of(task)
    if secrets is None:
        yield
        return
    former = logging.getLogRecordFactory()

    def factory(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = former(*args, **kwargs)
        with suppress(Exception):  # a record that cannot be formatted is reported by the handler that tries it
            _mask(record, secrets)
        return record

    logging.setLogRecordFactory(factory)
    try:
        yield
    finally:
        if logging.getLogRecordFactory() is factory:  # otherwise the handler has set one, and it may call ours
            logging.setLogRecordFactory(former)


def _secrets_of(task: dict[str, Any]) -> SecretFilter | None:
    handler = handler_named(task["type"], task["handler"])
    texts: set[str] = set()
    for member in members_of(task):
        layers = member.get("target_params", task["target_params"]), member["params"]
        params = merge(*(layer for layer in layers if isinstance(layer, dict)))
        texts.update(texts_of(handler, params, member["run"].get("headers") or {}))
    return SecretFilter(texts) if texts else None


def _mask(record: logging.LogRecord, secrets: SecretFilter) -> None:
    said = record.getMessage()
    if (shown := secrets.text(said)) != said:
        record.msg, record.args = shown, ()
    if record.stack_info:
        record.stack_info = secrets.text(record.stack_info)
    error = record.exc_info[1] if record.exc_info else None
    if error is None:
        return
    kind = type(error)
    trace = _PLAIN.formatException((kind, error, error.__traceback__))
    shown = secrets.text(trace)
    if shown == trace:
        return
    other = error_elsewhere(f"{kind.__module__}.{kind.__name__}", secrets.text(str(error)), shown)
    record.exc_info = type(other), other, None
    record.exc_text = shown  # the usual formatters write it
    record.stack_trace = shown  # our formatters do
