"""The question "Did it run at …?" on a schedule's page: an operator types a time and gets an answer in a sentence."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.http import HttpRequest, HttpResponse
from django.utils import timezone as clock
from django.utils.translation import gettext as _

from scheduling.admin.common.pages import READ, Page, Pages
from scheduling.admin.common.viewer import Viewer
from scheduling.admin.schedulers.why_words import Words, words
from scheduling.admin.ui.links import admin_url, scheduler_url
from scheduling.admin.ui.media import MEDIA, page_media
from scheduling.admin.ui.schedules import zone_of
from scheduling.admin.ui.times import format_due
from scheduling.core.text import visible_text
from scheduling.models import Scheduler
from scheduling.models.timetable import is_asked_by_second
from scheduling.models.visibility import Visibility, visibility_of
from scheduling.operations.typed_instants import LONGEST_TYPED, typed_instants
from scheduling.operations.why import example, skipped_words
from scheduling.operations.why_facts import found

PARAMETER = "at"


def panel(schedule: Scheduler, visible: Visibility, typed: str = "") -> dict[str, Any]:
    """The values for `why_at.html`: the form, and the answers if a time was typed."""
    info, now = zone_of(schedule), clock.now()
    context: dict[str, Any] = {
        "address": admin_url("scheduling_scheduler_why", schedule.pk),
        "name": PARAMETER,
        "zone": str(info),
        "example": example(info, now),
        "typed": visible_text(typed, LONGEST_TYPED),
        "answers": [],
        "error": "",
        "note": "",
    }
    if not typed.strip():
        return context
    chosen = typed_instants(typed, info, now, is_asked_by_second(schedule.schedule))
    if chosen is None:
        text = _("Type a time such as 03:00, or a date and a time such as %(example)s.")
        return context | {"error": text % {"example": context["example"]}}
    return context | {
        "note": skipped_words() if chosen.skipped else "",
        "answers": [answered(schedule, visible, at, now, info) for at in chosen.instants],
    }


def answered(schedule: Scheduler, visible: Visibility, at: datetime, now: datetime, info: ZoneInfo) -> dict[str, Any]:
    """One answer: the instant, the sentence, and the rows that it links to."""
    said: Words = words(schedule, found(schedule, visible, at, now), info)
    return {"at": format_due(at, info), **said}


class WhyAt(Pages):
    """The page with the answer."""

    pages: tuple[Page, ...] = (Page("why", "why", methods=READ),)

    def has_why_permission(self, request: HttpRequest) -> bool:
        """Whether the user may view schedules and executions, because the answer tells of both."""
        return self.has_view_or_change_permission(request) and Viewer.of(request).sees("schedulerexecution")

    def why_view(self, request: HttpRequest, row: Scheduler) -> HttpResponse:
        """GET answers for the time in the query string."""
        return self.page_response(
            request,
            "admin/scheduling/scheduler/why_at_page.html",
            title=_("%(name)s: did it run?") % {"name": visible_text(row, 120)},
            media=MEDIA + page_media(sheets=("scheduler",)),
            why_at=panel(row, visibility_of(request.user), request.GET.get(PARAMETER, "")[:LONGEST_TYPED]),
            schedule=visible_text(row, 120),
            back=scheduler_url(row.pk),
        )
