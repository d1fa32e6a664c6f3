"""The question "Did it run at …?" on a schedule's page: an operator types a time and gets an answer in a sentence."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.http import HttpRequest, HttpResponse
from django.utils import timezone as clock
from django.utils.translation import gettext as _

from scheduling.admin.common.pages import READ, Page, Pages
from scheduling.admin.common.viewer import Viewer
from scheduling.admin.schedulers.why_facts import found
from scheduling.admin.schedulers.why_words import Words, words
from scheduling.admin.ui.links import admin_url, scheduler_url
from scheduling.admin.ui.media import MEDIA, page_media
from scheduling.admin.ui.schedules import zone_of
from scheduling.admin.ui.times import format_minute
from scheduling.core.messages import FIRST_YEAR, LAST_YEAR
from scheduling.core.text import visible_text
from scheduling.core.zones import instants, resolve
from scheduling.models import Scheduler
from scheduling.models.visibility import Visibility, visibility_of

PARAMETER = "at"
_TYPED = re.compile(r"(?:(\d{4})-(\d{1,2})-(\d{1,2})[ T]+)?(\d{1,2}):(\d{2})(?::\d{2})?", re.ASCII)


def panel(schedule: Scheduler, visible: Visibility, typed: str = "") -> dict[str, Any]:
    """The values for `why_at.html`: the form, and the answers if a time was typed."""
    info, now = zone_of(schedule), clock.now()
    context: dict[str, Any] = {
        "address": admin_url("scheduling_scheduler_why", schedule.pk),
        "name": PARAMETER,
        "zone": str(info),
        "example": f"{now.astimezone(info) - timedelta(days=2):%Y-%m-%d} 03:00",
        "typed": visible_text(typed, 40),
        "answers": [],
        "error": "",
        "note": "",
    }
    if not typed.strip():
        return context
    wall = parsed(typed, now.astimezone(info).replace(tzinfo=None))
    if wall is None:
        text = _("Type a time such as 03:00, or a date and a time such as %(example)s.")
        return context | {"error": text % {"example": context["example"]}}
    chosen, skipped = _instants(wall, info)
    return context | {
        "note": _("The clock skipped this time on that day. This is the answer for the first instant after it.")
        if skipped
        else "",
        "answers": [answered(schedule, visible, at, now, info) for at in chosen],
    }


def answered(schedule: Scheduler, visible: Visibility, at: datetime, now: datetime, info: ZoneInfo) -> dict[str, Any]:
    """One answer: the instant, the sentence, and the rows that it links to."""
    said: Words = words(schedule, found(schedule, visible, at, now), info)
    return {"at": format_minute(at, info), **said}


def parsed(typed: str, now: datetime) -> datetime | None:
    """The local time that was typed, a whole minute without a zone; None if the text is no time.

    Args:
        now: the present local time. A time without a date is the latest such time that has passed.
    """
    match = _TYPED.fullmatch(typed.strip())
    if match is None:
        return None
    year, month, day, hour, minute = match.groups()
    try:
        reading = time(int(hour), int(minute))
        if year is not None:
            wall = datetime.combine(date(int(year), int(month), int(day)), reading)
            return wall if FIRST_YEAR < wall.year < LAST_YEAR else None
    except ValueError:
        return None
    wall = datetime.combine(now.date(), reading)
    return wall if wall <= now else wall - timedelta(days=1)


def _instants(wall: datetime, info: ZoneInfo) -> tuple[list[datetime], bool]:
    """The instants of a local time. A repeated time has two. The bool says whether the clock skips the time."""
    first, second = instants(wall, info)
    if first > second:
        return [resolve(wall, info)], True
    return sorted({first, second}), False


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
            why_at=panel(row, visibility_of(request.user), request.GET.get(PARAMETER, "")[:40]),
            schedule=visible_text(row, 120),
            back=scheduler_url(row.pk),
        )
