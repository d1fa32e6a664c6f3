"""What the pages of handlers and schedules say about a limit."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from scheduling.admin.common.viewer import Viewer
from scheduling.admin.limits.words import numbers_in_words, rules_in_words
from scheduling.core.text import visible_text
from scheduling.core.words import grouped
from scheduling.execution.lowered_limits import LoweredLimits
from scheduling.handlers.targets import handler_named
from scheduling.models import LimitKey, LimitPlace, LoweredLimit
from scheduling.models.limit import LONGEST_REASON

MOST_KEYS = 1_000
MOST_WAITING = 1_000
"""The page counts no further."""


def limit_context(type_: str, handler: str, viewer: Viewer) -> dict[str, Any]:
    """The template context of a page about a handler: which limit its runs keep to. Empty if it has none."""
    code = handler_named(type_, handler)
    if code is None or code.limit is None:
        return {}
    sentences = [_("Limit of its runs: %(rules)s.") % {"rules": rules_in_words(type_, handler)}]
    rules = LoweredLimits().apply(type_, handler, code.limit)
    if rules != code.limit:
        row = LoweredLimit.objects.filter(type=type_, name=handler).first()
        values = {
            "rules": numbers_in_words(rules),
            "user": visible_text(row.lowered_by, 150) if row else "",
            "reason": visible_text(row.reason, LONGEST_REASON).rstrip(".") if row else "",
        }
        sentences.append(_("Lowered by %(user)s to %(rules)s: %(reason)s.") % values)
    if viewer.visible.is_limited:  # runs of all groups wait for the same places
        return {"limit": " ".join(sentences), "limits": ""}
    if waiting := _waiting(type_, handler):
        shown = f"{grouped(MOST_WAITING)}+" if waiting > MOST_WAITING else grouped(waiting)
        sentences.append(_("Runs that wait for a place: %(count)s.") % {"count": shown})
    return {"limit": " ".join(sentences), "limits": viewer.list_of("limitkey", q=handler)}


def _waiting(type_: str, handler: str) -> int:
    keys = list(LimitKey.objects.filter(type=type_, name=handler).order_by().values_list("pk", flat=True)[:MOST_KEYS])
    rows = LimitPlace.objects.filter(limit__in=keys, state=LimitPlace.States.WAITING.value).order_by()
    return rows[: MOST_WAITING + 1].count()
