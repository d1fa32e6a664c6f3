"""Makes and cancels events: executions of the built-in worker `event`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone as clock
from pydantic import BaseModel, ValidationError

from scheduling.broker import Broker
from scheduling.core.events import WORKER, instant_of, metadata_problem, stored_policy, topic_problem
from scheduling.core.retry import RetryPolicy
from scheduling.execution.cancel import cancel
from scheduling.execution.params_from_code import storable
from scheduling.execution.submit import Asked, submit
from scheduling.handlers.listeners import listeners_of
from scheduling.handlers.params import ParamsInvalid
from scheduling.handlers.params_model import stored
from scheduling.models import Event


def make_event(
    topic: str,
    run_at: datetime,
    broker: Broker,
    *,
    timezone: str = "",
    payload: Mapping[str, Any] | BaseModel | None = None,
    retry: RetryPolicy | None = None,
    metadata: Mapping[str, Any] | None = None,
    key: str = "",
) -> tuple[int, bool]:
    """Insert an event, in the transaction of the caller. See `scheduling.api.schedule_at`.

    Returns:
        The id of its execution, and whether it is new.
    """
    if problem := topic_problem(topic) or metadata_problem(metadata or {}):
        raise ValueError(problem)
    given = stored(payload) if isinstance(payload, BaseModel) else dict(payload or {})
    own = storable(WORKER, {"payload": given, "metadata": dict(metadata or {})})
    _check_payload(topic, own.get("payload", {}))
    params: dict[str, Any] = {"topic": topic, **{name: value for name, value in own.items() if value}}
    if retry is not None:
        params["retry"] = stored_policy(retry)
    at = instant_of(run_at, timezone or settings.TIME_ZONE)
    with transaction.atomic():
        ((pk, is_new),) = submit([Asked(WORKER, params, at, key)], broker, clock.now())
        if is_new:
            Event.objects.create(execution_id=pk, topic=topic, metadata=own.get("metadata", {}))
    return pk, is_new


def cancel_event(pk: int, by: str) -> bool:
    """Cancel an event. Returns whether its delivery is prevented or was asked to end: not if it is over or unknown."""
    return Event.objects.filter(pk=pk).exists() and cancel(pk, by) != "over"


def _check_payload(topic: str, payload: Mapping[str, Any]) -> None:
    """Raise ParamsInvalid if a listener that this process knows refuses the payload."""
    for listener in listeners_of(topic):
        try:
            listener.validated(payload)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise ParamsInvalid({place: f"{first['msg']} (listener {listener.name})"}) from None
