"""What the pages of handlers and schedules say about batches."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from scheduling.core.words import decimal, grouped
from scheduling.handlers.targets import handler_named


def batch_context(type_: str, handler: str) -> dict[str, Any]:
    """The template context of a page about a handler: how many runs one call gets. Empty if it gets a single one."""
    code = handler_named(type_, handler)
    if code is None or code.batch is None:
        return {}
    text = _("Up to %(size)s runs in one call. A call waits %(wait)s s for further runs.")
    return {"batch": text % {"size": grouped(code.batch.size), "wait": decimal(f"{code.batch.wait:g}")}}
