"""The message of an execution, as it travels: body and headers. The row is the truth; this is the hint it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.params_model import masked
from scheduling.admin.parts import json_block
from scheduling.conf import get_conf
from scheduling.core.lifecycle import State
from scheduling.core.messages import FailedMessage, headers_of, stamp
from scheduling.dispatch import message_of
from scheduling.models import Attempt, SchedulerExecution
from scheduling.registry import Handler

ERROR_LIMIT = 2_000
WAITING = (State.CLAIMED.value, State.QUEUED.value, State.RETRYING.value)


@dataclass(frozen=True)
class MessagePanel:
    """`about` says which message it is, and whether a broker has it at all."""

    about: list[str]
    body: SafeString
    headers: SafeString


def message_panel(row: SchedulerExecution, attempts: Sequence[Attempt], handler: Handler | None) -> MessagePanel | None:
    """The message of the next attempt, or of the last one where none follows.

    None where there never was one: for a skipped occurrence, and for what came in unreadable.

    Args:
        attempts: those that ended, the first one first.
    """
    if not row.type or row.state == State.SKIPPED.value or not isinstance(row.params, dict):
        return None
    message = replace(message_of(row), params=masked(handler, row.params))
    if row.state not in WAITING:
        message = replace(message, attempt=max(row.attempt, 1), retry_count=row.retry_count)
    failures = [each for each in attempts if each.number > row.retry_base and each.error_class]
    before = next((each for each in reversed(failures) if each.number < message.attempt), None)
    error, first = "", stamp(failures[0].finished_at) if failures else ""
    if before is not None and message.retry_count:
        error = f"{before.error_class}: {before.error_message}"[:ERROR_LIMIT]
    if row.state == State.FAILED.value:
        error = f"{row.error_class}: {row.error_message}"[:ERROR_LIMIT]
        failed = FailedMessage(message, row.finished_at or row.executed_at, error, row.retry_count)
        return _panel([_("As it is parked in the failed queue.")], failed.payload(), headers_of(message, error, first))
    about = _("It asks for attempt %(number)s.") % {"number": message.attempt}
    return _panel([about], message.payload(), headers_of(message, error, first))


def _panel(about: list[str], body: dict[str, Any], headers: dict[str, Any]) -> MessagePanel:
    if get_conf().broker_url.startswith("database:"):
        about.append(
            _("With the database as transport the row itself is the message; to a broker it would be this one.")
        )
    return MessagePanel(about, json_block(body), json_block(headers))
