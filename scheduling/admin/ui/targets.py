"""The name of a target on all pages: its title. The raw name of the code stands in the element's title."""

from __future__ import annotations

from typing import Any

from django.utils.html import format_html

from scheduling.admin.ui.times import EMPTY
from scheduling.core.text import visible_text
from scheduling.handlers.targets import handler_named
from scheduling.models import Scheduler, SchedulerExecution


def target_title(type_: str, name: str, target: Any = None, limit: int = 80) -> str:
    """The target's title; its name if it has no title.

    Args:
        target: the target's row, whose title an operator may have edited. Without it, the title is that of the
            registered code.
    """
    if target is not None and getattr(target, "handler_name", None) == name:
        title = str(target)
    else:
        handler = handler_named(type_, name)
        title = handler.title if handler is not None else ""
    return visible_text(title or name or type_, limit) or EMPTY


def target_tag(type_: str, name: str, target: Any = None, limit: int = 80) -> str:
    """The target's title as an element whose own title is the raw name; plain text if both are the same."""
    title, raw = target_title(type_, name, target, limit), visible_text(name, 200)
    return title if not raw or title == raw else format_html('<span title="{}">{}</span>', raw, title)


def execution_target(row: SchedulerExecution, limit: int = 80) -> str:
    """The target of an execution as `target_tag` writes it. It makes no query."""
    return target_tag(row.type, row.target_name, loaded_target(row), limit)


def loaded_target(row: SchedulerExecution) -> Any:
    """The row of the execution's target, if the page has already loaded it with the schedule."""
    scheduler = row._state.fields_cache.get("scheduler")
    if not isinstance(scheduler, Scheduler):
        return None
    return scheduler._state.fields_cache.get(row.type)
