"""A sentence on the page of a schedule that code has made."""

from __future__ import annotations

from django.utils.translation import gettext as _

from scheduling.core.text import visible_text
from scheduling.handlers.default_schedules import default_of
from scheduling.models import Scheduler


def from_code(row: Scheduler) -> str:
    """What the code says about the schedule; empty if operators have made it."""
    if row.name_in_code:
        said = _(
            "Code gives this schedule its times, target and parameters under the name “%(name)s”. The next deploy "
            "may set them again. Whether it is paused is your decision."
        )
        return said % {"name": visible_text(row.name_in_code, 120)}
    if not row.is_worker_default:
        return ""
    now = default_of(row)
    if not now:
        return _("This schedule was made from the code of its worker. The code names no schedule any more.")
    if now == row.schedule:
        return _("This schedule was made from the code of its worker. The code does not change it any more.")
    said = _("This schedule was made from the code of its worker. The code names another schedule now: %(cron)s.")
    return said % {"cron": visible_text(now, 255)}
