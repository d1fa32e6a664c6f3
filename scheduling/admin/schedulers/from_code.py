"""A sentence on the page of a schedule that a file owns, or that code has made or may change."""

from __future__ import annotations

from django.utils.translation import gettext as _

from scheduling.core.text import visible_text
from scheduling.handlers.default_schedules import default_of
from scheduling.models import Scheduler


def from_code(row: Scheduler) -> str:
    """What else decides about the schedule; empty if only operators do."""
    if row.source_file:
        said = _(
            "The schedule file “%(file)s” owns this schedule, as “%(name)s”. The next apply of this file overwrites "
            "what you change here. A pause stays, unless the file has a “status”."
        )
        return said % {"file": visible_text(row.source_file, 200), "name": visible_text(row.name or "", 120)}
    if row.name_for_others:
        said = _(
            "Code, requests and commands find this schedule by the name “%(name)s”. If code has made it, the next "
            "deploy may set its times, target and parameters again. Whether it is paused is your decision."
        )
        return said % {"name": visible_text(row.name_for_others, 120)}
    if not row.is_worker_default:
        return ""
    now = default_of(row)
    if not now:
        return _("This schedule was made from the code of its worker. The code names no schedule any more.")
    if now == row.schedule:
        return _("This schedule was made from the code of its worker. The code does not change it any more.")
    said = _("This schedule was made from the code of its worker. The code names another schedule now: %(cron)s.")
    return said % {"cron": visible_text(now, 255)}
