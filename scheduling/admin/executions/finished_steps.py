"""What an execution has finished, so that its next attempt does not do it again: steps and positions."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from scheduling.admin.ui.times import time_tag
from scheduling.core.text import visible_text
from scheduling.models import RunStep, SchedulerExecution

SHOWN = 100
"""At most this many steps are listed: the last ones."""

POSITION_LIMIT = 200
"""The greatest length of a position, in characters."""


def finished_steps(row: SchedulerExecution) -> dict[str, Any]:
    """The template context: one line for each step and position. Empty if the handler has none.

    The result of a step is not shown. It is not masked, because later attempts need it, and it may hold a secret.
    """
    rows = RunStep.objects.filter(execution=row.pk) if row.attempt else RunStep.objects.none()
    found = list(rows.order_by("-pk")[: SHOWN + 1])
    if not found:
        return {}
    return {
        "lines": [
            {
                "name": visible_text(line.name),
                "what": _position(line) if line.kind == RunStep.Kind.CURSOR else _("finished"),
                "attempt": line.attempt,
                "stored": time_tag(line.stored_at),
            }
            for line in found[:SHOWN][::-1]
        ],
        "more": len(found) > SHOWN,
    }


def _position(line: RunStep) -> str:
    return _("position %(value)s") % {"value": visible_text(line.value, POSITION_LIMIT)}
