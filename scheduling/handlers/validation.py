"""Checks a Scheduler's params against the params model of its handler when the Scheduler is saved."""

from __future__ import annotations

import json
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Model
from django.utils.translation import gettext as _

from scheduling.core.targets import TARGET_KINDS
from scheduling.core.text import visible_text
from scheduling.handlers.params import ParamsInvalid, merge, unknown, validate
from scheduling.handlers.targets import handler_behind
from scheduling.models import Scheduler


def params_error(scheduler: Scheduler) -> str:
    """The reason why the schedule's params do not fit the params model of its handler; empty if they fit.

    If the handler is not registered in this process, the params are accepted, because a rolling deployment may add the
    handler later.
    """
    return run_params_error(scheduler.target_type, scheduler.target, scheduler.params)


def run_params_error(type_: str, target: Model | None, params: Any, *, stored: bool = False) -> str:
    """The reason why the params of a run do not fit the params model; empty if they fit.

    Args:
        params: the params of the run. They are merged with the params of the target's row before the check.
        stored: whether they are stored already, and are not changed. Then a param that the handler no longer knows is
            no reason, because the run leaves it out.
    """
    handler = handler_behind(type_, target)
    if handler is None:
        return ""
    if not isinstance(params, dict):
        return "Parameters are a JSON object."
    defaults = getattr(target, "params", {})
    if not isinstance(defaults, dict):
        return "The target's own parameters are not a JSON object."
    try:
        validate(handler, *(({}, merge(defaults, params)) if stored else (params, defaults)))
    except ParamsInvalid as error:
        return str(error)
    return ""


def left_out(scheduler: Scheduler) -> list[str]:
    """The names of the schedule's stored params that its handler does not know, and that its runs leave out."""
    handler, params = handler_behind(scheduler.target_type, scheduler.target), scheduler.params
    return unknown(handler, params) if handler is not None and isinstance(params, dict) else []


def service_error(scheduler: Scheduler) -> str:
    """Why the schedule cannot be a service; empty if it can, or if it is none.

    A service is one run that goes on. There is nothing with which it could be called together.
    """
    handler = handler_behind(scheduler.target_type, scheduler.target) if scheduler.stay_alive else None
    if handler is None or handler.batch is None:
        return ""
    text = _("The worker “%(name)s” is called with batches of runs, so it cannot be a service. Choose another worker.")
    return text % {"name": visible_text(handler.name, 100)}


def mark_checked(scheduler: Scheduler) -> None:
    """Tell the next `save` that a form has just validated the params of this schedule."""
    scheduler.__dict__["_checked_params"] = _subject(scheduler)


def _subject(scheduler: Scheduler) -> tuple[Any, ...]:
    """The values on which the result of the check depends. If none has changed, the check need not be repeated."""
    return scheduler.target_type, scheduler.target_id, json.dumps(scheduler.params, default=str)


def check_before_save(sender: Any, instance: Scheduler, raw: bool = False, **_kwargs: Any) -> None:
    """`pre_save` receiver that validates the params, unless a form has already validated them.

    Raises:
        django.core.exceptions.ValidationError: the params do not fit; the error is at the field `params`. Or the
            schedule cannot be a service; the error is at the field `stay_alive`.
    """
    fields = _kwargs.get("update_fields")
    may_become_service = not raw and (fields is None or {"stay_alive", *TARGET_KINDS} & set(fields))
    if may_become_service and (problem := service_error(instance)):
        raise ValidationError({"stay_alive": ValidationError(problem, code="stay_alive")})
    if raw or (fields is not None and not {"params", *TARGET_KINDS} & set(fields)):
        return
    checked = instance.__dict__.pop("_checked_params", None)
    if checked is not None and checked == _subject(instance):
        return
    found = params_error(instance)
    if found:
        raise ValidationError({"params": ValidationError(found, code="params")})
