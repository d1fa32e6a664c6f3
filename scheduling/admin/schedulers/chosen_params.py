"""The parameters of the target that a schedule has, or that its form names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext

from scheduling.admin.params.form import ParamsForm
from scheduling.admin.ui.links import admin_url
from scheduling.core.targets import TARGETS
from scheduling.core.text import visible_text
from scheduling.handlers.targets import find_target, handler_behind, handler_of
from scheduling.handlers.validation import run_params_error
from scheduling.models import Scheduler


def params_form(row: Scheduler, data: Any = None, initial: Mapping[str, Any] | None = None) -> ParamsForm:
    """The parameters of a schedule as a form. If a form was posted, its target replaces the row's target.

    Args:
        initial: names the target of a new schedule, as a link from the page of a target does.
    """
    stored = {name: getattr(row, f"{name}_id") for name in TARGETS}
    chosen = stored if any(stored.values()) or initial is None else {name: initial.get(name) for name in TARGETS}
    if data is not None:
        chosen = {name: data.get(name, "") for name in TARGETS}
    key = chosen_target(chosen)
    type_, target = (key[0], find_target(*key)) if key is not None else ("", None)
    return ParamsForm(
        handler_behind(type_, target),
        row.params,
        inherited=getattr(target, "params", {}),
        stored_for=handler_of(row),
        data=data,
        url=admin_url("scheduling_scheduler_params", row.pk or 0),
    )


def params_problem(scheduler: Scheduler, *, stored: bool = False) -> str:
    """A sentence that says why the schedule's or the target's params do not fit the handler; empty if they fit.

    Args:
        stored: whether the params are stored, and are only used (see `run_params_error`).
    """
    target = scheduler.target
    if target is not None and not isinstance(getattr(target, "params", {}), dict):
        return gettext("The target's own parameters are not a JSON object. Fix them first.")
    if not isinstance(scheduler.params, dict):
        return gettext("Parameters are a JSON object.")
    # The text quotes the names of unknown parameters. These names may contain any characters.
    said = run_params_error(scheduler.target_type, scheduler.target, scheduler.params, stored=stored)
    return visible_text(said, 1_000)


def chosen_target(values: Mapping[str, Any]) -> tuple[str, int] | None:
    """The type and the primary key of the only target among these values; None if there is none, or more than one.

    If a user chose two targets, it is unknown which handler gets the parameters. The field of a target shows the error.
    """
    texts = {name: str(values.get(name) or "") for name in TARGETS}
    keys = [(name, int(text)) for name, text in texts.items() if text.isdecimal() and len(text) < 19]
    return keys[0] if len(keys) == 1 else None
