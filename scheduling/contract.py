"""The contract between a Scheduler's params and the code it names, held when it is saved."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Model

from scheduling.models import Scheduler
from scheduling.params import ParamsInvalid, merge, validate
from scheduling.registry import UnknownHandler, find


def problem(scheduler: Scheduler) -> str:
    """Why the row's params do not fit its target's model; empty when they do.

    Code that is not registered here is no problem of the params: a rolling deploy may bring it.
    """
    return problem_of(scheduler.target_type, scheduler.target, scheduler.params)


def problem_of(type_: str, target: Model | None, params: Any) -> str:
    """The same for the params of a run, which lie over those of the target's row."""
    if target is None:
        return ""
    try:
        handler = find(type_, target.handler_name)  # type: ignore[attr-defined]
    except UnknownHandler:
        return ""
    if not isinstance(params, dict):
        return "Parameters are a JSON object."
    defaults = getattr(target, "params", {})
    if not isinstance(defaults, dict):
        return "The target's own parameters are not a JSON object."
    try:
        validate(handler, merge(defaults, params))
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
