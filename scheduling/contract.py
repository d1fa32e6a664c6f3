"""The contract between a Scheduler's params and the code it names, held when it is saved."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError

from scheduling.models import Scheduler
from scheduling.params import ParamsInvalid, merge, validate
from scheduling.registry import UnknownHandler, find


def problem(scheduler: Scheduler) -> str:
    """Why the row's params do not fit its target's model; empty when they do.

    Code that is not registered here is no problem of the params: a rolling deploy may bring it.
    """
    target = scheduler.target
    if target is None:
        return ""
    try:
        handler = find(scheduler.target_type, target.handler_name)  # type: ignore[attr-defined]
    except UnknownHandler:
        return ""
    if not isinstance(scheduler.params, dict):
        return "Parameters are a JSON object."
    try:
        validate(handler, merge(target.params, scheduler.params))  # type: ignore[attr-defined]
    except ParamsInvalid as error:
        return str(error)
    return ""


def check_before_save(sender: Any, instance: Scheduler, raw: bool = False, **_kwargs: Any) -> None:
    """`pre_save` receiver.

    Raises:
        django.core.exceptions.ValidationError: at the field `params`.
    """
    fields = _kwargs.get("update_fields")
    if raw or (fields is not None and not {"params", "worker", "report", "reminder"} & set(fields)):
        return
    found = problem(instance)
    if found:
        raise ValidationError({"params": ValidationError(found, code="params")})
