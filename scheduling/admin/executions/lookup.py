"""Helpers that the pages of one execution share: facts about the execution, and the link back to its page."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from scheduling.admin.ui.badges import state_badge
from scheduling.admin.ui.links import execution_url, link
from scheduling.admin.ui.targets import execution_target
from scheduling.admin.ui.times import EMPTY
from scheduling.core.text import visible_text
from scheduling.models import SchedulerExecution


def trigger_words(row: SchedulerExecution, limit: int | None = None) -> str:
    """The execution's trigger, and the user who asked for the run, such as `cron` or `manual (ada)`."""
    word, who = row.get_trigger_display(), visible_text(row.requested_by, limit)
    return _("%(trigger)s (%(who)s)") % {"trigger": word, "who": who} if who else word


def way_back(row: SchedulerExecution) -> dict[str, Any]:
    """The URL of the execution's page, as the arguments `back` and `crumbs` of a `Confirmation`."""
    address = execution_url(row.pk)
    return {"back": address, "crumbs": [(address, _("Execution %(id)s") % {"id": row.pk})]}


def facts_of(row: SchedulerExecution) -> list[tuple[str, Any]]:
    """Facts about the execution for a confirmation page."""
    return [
        (_("Execution"), link(execution_url(row.pk), row.pk)),
        (_("State"), state_badge(row.state)),
        (_("Target"), execution_target(row)),
        (_("Schedule"), visible_text(row.scheduler, 120) if row.scheduler is not None else EMPTY),
    ]
