"""What a child answers its consumer: how an attempt ended, as JSON data."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from scheduling.consumer import framing
from scheduling.consumer.error_report import error_fields, shown
from scheduling.consumer.notices import HANDED_BACK
from scheduling.consumer.precondition import NotNeeded
from scheduling.consumer.terminated import Terminated
from scheduling.core.json_bounds import NotStorable
from scheduling.core.outcome import NonRetryableError, RetryableError
from scheduling.core.results import encode
from scheduling.core.run_sentences import HANDLER_EXITED
from scheduling.core.snooze import Snooze
from scheduling.core.steps import HandedBack
from scheduling.handlers import UnknownHandler
from scheduling.handlers.error_rules import ErrorRules
from scheduling.handlers.params import ParamsInvalid


def succeeded(result: str = "") -> dict[str, Any]:
    """The report of a successful attempt. `result` is JSON."""
    return {"op": "ended", "outcome": "succeeded", "exit_code": 0, "result": result}


def failed(error: BaseException | None, **more: Any) -> dict[str, Any]:
    """The report of a failed attempt. `more` adds further fields."""
    return {"op": "ended", "outcome": "failed", "exit_code": 1, **error_fields(error), **more}


def ended_by(error: BaseException, called: bool, rules: ErrorRules) -> dict[str, Any]:
    """The report of an attempt that an exception has ended.

    Args:
        called: whether the handler was called.
        rules: the handler's rules on which errors are retried.
    """
    match error:
        case UnknownHandler() | NonRetryableError() | ParamsInvalid():
            # If the handler is unknown, a retry can help, because a rolling deploy may still add the handler. A retry
            # does not help against the other two errors.
            return failed(error, retryable=isinstance(error, UnknownHandler), called=called)
        case Snooze() | NotNeeded():
            return _not_run(error)
        case RetryableError():
            return failed(error, retry_after=error.retry_after)
        case SystemExit():
            return _exited(error)
        case HandedBack():
            return failed(error) | {"outcome": HANDED_BACK, "exit_code": 0}
        case _:
            return failed(error, retryable=_may_retry(rules, error))


def told(answer: dict[str, Any], at_end: Callable[[Mapping[str, Any]], None] | None) -> dict[str, Any]:
    """Call `Handler.at_end` with the answer; returns the answer. An error of the function does not change it."""
    if at_end is not None:
        try:
            at_end(answer)
        except Terminated:
            raise
        except BaseException:  # code of the project may run in it, and may raise anything
            logging.getLogger("scheduling.run").exception("The end of the run could not be told")
    return answer


def _exited(error: SystemExit) -> dict[str, Any]:
    if error.code in (None, 0):
        return succeeded()
    # A process shows the lowest eight bits of a number, and 1 for any other value.
    code = error.code & 0xFF if type(error.code) is int else 1
    return failed(error) | {"message": HANDLER_EXITED.format(code=shown(error.code)), "exit_code": code}


def _not_run(error: Snooze | NotNeeded) -> dict[str, Any]:
    """The report of an attempt in which the handler was not ready or had nothing to do."""
    answer = {"op": "ended", "outcome": "skipped", "exit_code": 0, "message": error_fields(error)["message"]}
    return answer | ({"outcome": "snoozed", "wait": error.wait(datetime.now(UTC))} if isinstance(error, Snooze) else {})


def _may_retry(rules: ErrorRules, error: BaseException) -> bool:
    try:
        return rules.may_retry(error)
    except Terminated:
        raise
    except BaseException:  # `retry_if` is the project's code and may raise anything, even SystemExit
        return True


def packed(frame: dict[str, Any], task: dict[str, Any]) -> bytes:
    """Add the execution's id and the attempt's number to a frame. Returns the packed frame.

    If packing fails, only the fields that are texts, integers or booleans are kept.
    """
    attempt = {name: task["run"][name] for name in ("execution_id", "attempt")}
    try:
        return framing.pack(frame | attempt)
    except Exception:  # for example, the `retry_after` of a RetryableError is not a number
        plain = {name: value for name, value in frame.items() if type(value) in (str, int, bool)}
        return framing.pack(plain | attempt)


def portable(result: Any) -> str:
    """The handler's result as JSON. A result that cannot be stored does not fail the run: the output says why."""
    try:
        return encode(result)
    except NotStorable as error:
        logging.getLogger("scheduling.run").info("The result of the handler is not stored: it %s", error)
    except Terminated:
        raise
    except BaseException as error:  # code of the project may run in a subclass of dict, and may raise anything
        logging.getLogger("scheduling.run").info("The result of the handler is not stored: %s", type(error).__name__)
    return ""
