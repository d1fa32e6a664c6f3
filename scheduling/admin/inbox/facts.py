"""Facts about one failure for the pages that ask what to do with it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _

from scheduling.admin.ui.links import link, scheduler_url
from scheduling.admin.ui.targets import execution_target
from scheduling.admin.ui.text import first_line
from scheduling.admin.ui.times import EMPTY
from scheduling.core.known_sentences import in_language
from scheduling.core.text import visible_text
from scheduling.models import SchedulerExecution


def failure_facts(row: SchedulerExecution, request: HttpRequest) -> list[tuple[str, Any]]:
    """Pairs of label and value."""
    return [
        (_("Execution"), row.pk),
        (_("Target"), execution_target(row)),
        (_("Schedule"), schedule_of(row, request)),
        (_("Error"), first_line(f"{row.error_class}: {in_language(row.error_message)}", 200)),
    ]


def schedule_of(row: SchedulerExecution, request: HttpRequest) -> str:
    """The schedule's name, as a link to its page if the user may view it."""
    if row.scheduler is None:
        return EMPTY
    name = visible_text(row.scheduler, 120)
    if not request.user.has_perm("scheduling.view_scheduler"):
        return name
    return link(scheduler_url(row.scheduler_id), name)
