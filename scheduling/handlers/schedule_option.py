"""Checks the option `schedule` of a registered worker."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import BaseModel

from scheduling.core.cron import CronError, next_after, parse
from scheduling.handlers.params_model import ParamsInvalid, instance


def schedule_problem(expression: str, params: type[BaseModel]) -> str:
    """Why no schedule can be made from the expression: a sentence; empty if one can."""
    if not isinstance(expression, str):
        return "It is no text."
    try:
        # Modules are imported before the settings are checked. So whether the site allows seconds is checked later,
        # when the schedule is made.
        next_after(parse(expression), "UTC", datetime.now(UTC))
        instance(params, {})
    except CronError as error:
        return str(error)
    except ParamsInvalid as error:
        return f"A schedule from code gives no parameters, and these have no defaults: {error}"
    return ""
