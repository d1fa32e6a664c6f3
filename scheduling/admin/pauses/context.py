"""What the pages of handlers and schedules, and the dashboard, say about pauses."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from scheduling.admin.common.viewer import Viewer
from scheduling.admin.pauses.form import WHAT, choice_of
from scheduling.admin.ui.links import admin_url, list_url
from scheduling.core.known_sentences import in_language
from scheduling.core.pauses import Scope
from scheduling.execution.work_pauses import pause_for
from scheduling.handlers.permission import lacks
from scheduling.handlers.targets import handler_named
from scheduling.monitoring.findings.watched import paused_work


def pause_context(type_: str, handler: str, queue: str, viewer: Viewer) -> dict[str, Any]:
    """The template context of a page about a handler: the pause for which its runs wait, and the address that pauses.

    Args:
        queue: the work queue of its runs; empty if they may be in any.
    """
    found = pause_for(type_, handler, queue, viewer.now)
    context: dict[str, Any] = {"pauses": viewer.list_of("pause")}
    if found is not None:
        context["paused_work"] = in_language(found.sentence())
    elif viewer.may_pause_work and not lacks(viewer.user, handler_named(type_, handler)):
        context["pause_work"] = pause_address(choice_of(Scope.HANDLER, type_, handler))
    return context


def pause_address(what: str) -> str:
    """The address of the form that pauses something.

    Args:
        what: see `choice_of`.
    """
    return f"{admin_url('scheduling_pause_add')}?{urlencode({WHAT: what})}"


def freeze_context(viewer: Viewer) -> dict[str, Any]:
    """The template context of the dashboard's switch. Of a user who may not use it, empty."""
    if not viewer.may_pause_work:
        return {}
    # The dashboard counts the pauses together with all other rows, so without a pause this costs no query.
    found = pause_for("", "", "", viewer.now) if viewer.present.count(paused_work) else None
    return {"unfreeze": list_url("pause")} if found is not None else {"freeze": pause_address(Scope.SITE.value)}
