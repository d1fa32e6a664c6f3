"""Shows the message that is sent to the broker for an execution. Body and headers are computed from the row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.utils.translation import gettext as _

from scheduling.admin.params.json_field import json_block
from scheduling.conf import get_conf
from scheduling.core.lifecycle import WAITING, State
from scheduling.core.messages import FailedMessage, headers_of, iso_utc
from scheduling.handlers import Handler
from scheduling.handlers.secret_headers import masked_headers
from scheduling.handlers.secret_params import masked
from scheduling.models import Attempt, SchedulerExecution
from scheduling.models.execution import message_of

ERROR_LIMIT = 2_000


def message_panel(
    row: SchedulerExecution, attempts: Sequence[Attempt], handler: Handler | None
) -> dict[str, Any] | None:
    """The message of the next attempt, or of the last attempt if no attempt follows.

    The keys of the result are `body`, `headers`, and `about` with sentences about the message. The result is None for
    a skipped occurrence, because it has no message. It is also None for a message that cannot be read.

    Args:
        attempts: the attempts that have ended, the oldest first.
    """
    if not row.type or row.state == State.SKIPPED.value or not isinstance(row.params, dict):
        return None
    message = replace(message_of(row), params=masked(handler, row.params))
    message = replace(message, headers=masked_headers(message.headers))
    if row.state not in WAITING:
        message = replace(message, attempt=max(row.attempt, 1), retry_count=row.retry_count)
    failures = [attempt for attempt in attempts if attempt.number > row.retry_base and attempt.error_class]
    before = next((attempt for attempt in reversed(failures) if attempt.number < message.attempt), None)
    error, first = "", iso_utc(failures[0].finished_at) if failures else ""
    if before is not None and message.retry_count:
        error = f"{before.error_class}: {before.error_message}"[:ERROR_LIMIT]
    if row.state == State.FAILED.value:
        error = f"{row.error_class}: {row.error_message}"[:ERROR_LIMIT]
        failed = FailedMessage(message, row.finished_at or row.executed_at, error, row.retry_count)
        return _panel([_("As it is parked in the failed queue.")], failed.payload(), headers_of(message, error, first))
    about = _("It asks for attempt %(number)s.") % {"number": message.attempt}
    return _panel([about], message.payload(), headers_of(message, error, first))


def _panel(about: list[str], body: dict[str, Any], headers: dict[str, Any]) -> dict[str, Any]:
    return {"about": about, "body": json_block(body), "headers": json_block(headers)}


def embedded() -> bool:
    """Whether the executions table is the transport. No message exists then."""
    return get_conf().broker_url.startswith("database:")
