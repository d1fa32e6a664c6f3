"""The name of a target on all pages: its title. The raw name of the code stands in the element's title."""

from __future__ import annotations

from typing import Any

from django.db.models import Model
from django.urls import NoReverseMatch
from django.utils.html import format_html
from django.utils.translation import gettext as _

from scheduling.admin.ui.links import admin_url, link
from scheduling.admin.ui.times import EMPTY
from scheduling.core.text import visible_text
from scheduling.handlers.targets import handler_named
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.labels import TYPES


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


def linked_target(target: type[Model] | Model, pk: object, text: str, user: Any) -> str:
    """The text as a link to the target's page; plain text if this user may not see it, or if the site has no such page.

    Args:
        target: the target's row or model.
        pk: the target's primary key; None if it is not known.
    """
    opts = target._meta
    if pk is None or not user.has_perm(f"{opts.app_label}.view_{opts.model_name}"):
        return text
    try:
        return link(admin_url(f"{opts.app_label}_{opts.model_name}_change", pk), text)
    except NoReverseMatch:
        return text


def execution_target(row: SchedulerExecution, limit: int = 80) -> str:
    """The target of an execution as `target_tag` writes it. It makes no query."""
    return target_tag(row.type, row.target_name, loaded_target(row), limit)


def loaded_target(row: SchedulerExecution) -> Any:
    """The row of the execution's target, if the page has already loaded it with the schedule."""
    scheduler = row._state.fields_cache.get("scheduler")
    if not isinstance(scheduler, Scheduler):
        return None
    return scheduler._state.fields_cache.get(row.type)


def unknown_code(type_: str) -> str:
    """What it means for a run that no code of its target is registered in this web process."""
    text = _(
        "The code of this %(type)s is not registered in this web server, so its parameters cannot be checked here. "
        "The run starts anyway."
    )
    return text % {"type": TYPES.get(type_, _("target"))}
