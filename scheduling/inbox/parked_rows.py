"""Creates a row in the failed inbox for each parked message that has no row yet."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from scheduling.broker import Parked
from scheduling.core import inbox_sentences as say
from scheduling.core.deaths import DELIVERY_LIMIT
from scheduling.core.fingerprint import fingerprint
from scheduling.core.lifecycle import State, Trigger
from scheduling.core.messages import DecodeError, FailedMessage, decode, decode_failed
from scheduling.core.text import clean
from scheduling.execution.announce import report_row
from scheduling.execution.death_records import record_deaths_by_key
from scheduling.execution.foreign import columns_of, message_key
from scheduling.logs import get_logger
from scheduling.models import SchedulerExecution
from scheduling.models.parts import rows_in_parts
from scheduling.processes.database import each_or_all
from scheduling.processes.identity import container_id

log = get_logger(__name__)

ROWS_PER_INSERT = 500
GAVE_UP = say.GAVE_UP.format()
UNREADABLE = "UnreadableMessage"


def make_rows(messages: Sequence[Parked], now: datetime) -> int:
    """Create a failed row for each message. Returns the number of messages.

    The caller must hold the failed queue, so only one process at a time creates these rows. If a row of the same
    schedule already has the message's execution key, no second row is created.
    """
    newest = SchedulerExecution.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    for chunk in in_chunks(list(messages)):
        each_or_all(chunk, lambda part: _make(part, now), lambda message, error: _make_refused(message, error, now))
    # MySQL does not return the keys of inserted rows, and rows that exist already were not inserted.
    made = SchedulerExecution.objects.filter(pk__gt=newest, trigger=Trigger.MESSAGE.value, executed_at=now)
    for row in rows_in_parts(made.filter(state=State.FAILED.value, container_id=container_id())):
        report_row(row)
    return len(messages)


def _make(messages: Sequence[Parked], now: datetime) -> None:
    SchedulerExecution.objects.bulk_create([_row(message, now) for message in messages], ignore_conflicts=True)
    record_deaths_by_key({message_key(message.message_id): message.deaths for message in messages}, now)


def _make_refused(parked: Parked, error: Exception, now: datetime) -> None:
    """Create a row for a message whose values the database refuses. The row keeps the bytes and the reason."""
    problem = say.NOT_RECORDED.format(error=f"{error!s:.1000}")
    SchedulerExecution.objects.bulk_create([_unreadable_row(parked, problem, now)], ignore_conflicts=True)
    record_deaths_by_key({message_key(parked.message_id): parked.deaths}, now)


def _row(parked: Parked, now: datetime) -> SchedulerExecution:
    failed: FailedMessage | None = None
    try:
        columns = columns_of(decode(parked.body))
        with suppress(DecodeError):
            failed = decode_failed(parked.body)
    except DecodeError as problem:
        return _unreadable_row(parked, str(problem), now)
    error = (failed.failed_reason if failed else "") or parked.reason
    return _failed_row(parked, columns, "Failed", error, failed.failed_at if failed is not None else now, now)


def _unreadable_row(parked: Parked, problem: str, now: datetime) -> SchedulerExecution:
    columns = {"type": "", "target_id": None, "target_name": "", "params": _params_of(parked.body)}
    return _failed_row(parked, columns, UNREADABLE, problem, now, now)


def _failed_row(
    parked: Parked, columns: dict[str, Any], error_class: str, error: str, failed_at: datetime, now: datetime
) -> SchedulerExecution:
    if limit_reached(parked):
        error_class, error = "DeliveryLimit", GAVE_UP
    error = clean(error or say.NO_REASON.format(), 4_000)
    return SchedulerExecution(
        **columns, execution_key=message_key(parked.message_id), trigger=Trigger.MESSAGE.value,
        scheduled_at=failed_at, executed_at=now, container_id=container_id(), state=State.FAILED.value,
        finished_at=failed_at, published_at=now, error_class=error_class, error_message=error,
        fingerprint=fingerprint(error_class, error), reason=say.FOUND.format(),
    )  # fmt: skip


def _params_of(body: bytes) -> dict[str, Any]:
    """The params of the row for an unreadable message. They contain the message's body as text.

    If the text does not hold every byte of the body, the params also contain the body in base64.
    """
    params = {"body": clean(body.decode("utf-8", "backslashreplace"), 64_000)}
    if params["body"].encode() != body:
        params["body_base64"] = base64.b64encode(body[:1_000_000]).decode()
    return params


def _body_of(params: dict[str, Any]) -> bytes:
    if isinstance(encoded := params.get("body_base64"), str):
        return base64.b64decode(encoded)
    return str(params.get("body", "")).encode()


def decode_again(row: SchedulerExecution) -> bool:
    """Try again to decode the unreadable message of a row, and fill the row with the result.

    Returns False if the message is still unreadable or the row is no longer failed.
    """
    body = _body_of(row.params)
    try:
        task = decode(body)
        columns = columns_of(task)
    except DecodeError as error:
        log.warning("Not republished, it still cannot be read: %s", error, extra={"execution": row.pk})
        return False
    return bool(SchedulerExecution.objects.filter(pk=row.pk, state=State.FAILED.value).update(**columns))


def in_chunks(values: list[Any]) -> Iterable[list[Any]]:
    """Split the values into lists that are short enough for one SQL statement."""
    return (values[start : start + ROWS_PER_INSERT] for start in range(0, len(values), ROWS_PER_INSERT))


def limit_reached(parked: Parked) -> bool:
    """Whether the broker itself moved the message to the failed queue, because the delivery limit was reached."""
    return any(death.reason == DELIVERY_LIMIT for death in parked.deaths)
