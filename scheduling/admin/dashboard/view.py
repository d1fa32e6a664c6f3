"""The dashboard's page, and a view that sends one part of the page again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django import forms
from django.contrib import admin
from django.db.models import prefetch_related_objects
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern
from django.utils import timezone as clock
from django.utils.translation import gettext as _

from scheduling.admin.common.pages import READ, Page
from scheduling.admin.common.read_only import ReadOnly
from scheduling.admin.common.viewer import Viewer
from scheduling.admin.dashboard.activity import activity
from scheduling.admin.dashboard.attention import attention
from scheduling.admin.dashboard.heatmap import heatmap, is_counted
from scheduling.admin.dashboard.next_day import hour_of, next_day
from scheduling.admin.dashboard.running import running
from scheduling.admin.dashboard.schedules import schedules
from scheduling.admin.dashboard.tiles import tiles
from scheduling.admin.dashboard.timeline import SHOWN_DOTS, timeline, upcoming_runs
from scheduling.admin.pauses.context import freeze_context
from scheduling.admin.ui.links import admin_url
from scheduling.admin.ui.media import page_media
from scheduling.admin.ui.times import time_tag
from scheduling.core.targets import TARGETS
from scheduling.core.text import visible_text
from scheduling.models.dashboard import Dashboard
from scheduling.monitoring.findings import watched

TEMPLATES = "admin/scheduling/dashboard"
EVERYTHING = "everything"
"""The query parameter of a page that contains each part from the start, for a browser without JavaScript."""


class Part(NamedTuple):
    """A part of the page.

    Attributes:
        context: returns the template context.
        seconds: the time between two refreshes.
        is_ready: whether the page contains the part from the start. Otherwise `poll.js` fetches it at once, so that
            the page does not wait for the part.
    """

    context: Callable[[Viewer], dict[str, Any]]
    seconds: int
    is_ready: Callable[[Viewer], bool] = lambda _viewer: True


PARTS = {
    "tiles": Part(tiles, 5),
    "attention": Part(attention, 5),
    "running": Part(running, 5),
    "timeline": Part(timeline, 5),
    "next_day": Part(next_day, 60),
    "schedules": Part(schedules, 10),
    # 60 seconds are enough for the heatmap, because the colour of an hour changes rarely.
    "heatmap": Part(heatmap, 60, is_counted),
}


@admin.register(Dashboard)
class DashboardAdmin(ReadOnly):
    """Adds the dashboard to the admin's sidebar, with a permission of its own. The model `Dashboard` has no table."""

    pages = (
        Page("changelist", "view", "", READ),
        Page("part", "view", "part/<slug:name>/", READ),
        Page("hour", "view", "hour/<int:seconds>/", READ),
        Page("activity", "view", "activity/", READ),
    )

    @property
    def media(self) -> forms.Media:
        return super().media + page_media(sheets=("dashboard",), scripts=("swap", "poll"))

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("scheduling.view_dashboard")

    def get_urls(self) -> list[URLPattern]:
        """The URLs of `pages` only. Django's own admin pages would need a database table."""
        return self.page_urls()

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        viewer = Viewer.of(request)
        request.failures = viewer.present.count(watched.failed)  # type: ignore[attr-defined] # for the sidebar
        context = {
            "media": self.media,
            "title": _("Dashboard"),
            "viewer": viewer,
            "parts": {name: self._part(name, viewer, EVERYTHING not in request.GET) for name in PARTS},
            "everything": f"{request.path}?{EVERYTHING}",
            **freeze_context(viewer),
            **(extra_context or {}),
        }
        return self.page_response(request, f"{TEMPLATES}/page.html", **context)

    def part_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """Sends one part as an HTML fragment to `poll.js`."""
        if name not in PARTS:
            raise Http404
        part = self._part(name, Viewer.of(request))
        # `poll.js` recognises a part by the header `X-Part`. After the session has ended, Django sends the login page
        # instead, without this header.
        return TemplateResponse(request, f"{TEMPLATES}/{name}.html", {"part": part}, headers={"X-Part": name})

    def hour_view(self, request: HttpRequest, seconds: int) -> HttpResponse:
        """The runs that fall due in one hour of the part "Next 24 hours"."""
        viewer = Viewer.of(request)
        if (found := hour_of(seconds, viewer.now)) is None or not viewer.sees("scheduler"):
            raise Http404
        start, end = found
        runs, more = upcoming_runs(viewer.visible, viewer.now, start, end - timedelta(microseconds=1))
        prefetch_related_objects([run.scheduler for run in runs], *TARGETS)
        lines = [
            {
                "at": time_tag(run.instant, viewer.zone),
                "name": visible_text(run.scheduler, 120),
                "address": viewer.scheduler(run.scheduler.pk),
                "target": visible_text(run.scheduler.target or "", 120),
            }
            for run in runs
        ]
        local = [instant.astimezone(viewer.zone) for instant in found]
        title = _("Runs from %(start)s to %(end)s") % {"start": f"{local[0]:%H:%M}", "end": f"{local[1]:%H:%M %Z}"}
        return self.page_response(
            request, f"{TEMPLATES}/hour.html", title=title, lines=lines, more=SHOWN_DOTS if more else 0
        )

    def activity_view(self, request: HttpRequest) -> HttpResponse:
        """Who did what."""
        found = activity(request, clock.now())
        return self.page_response(request, f"{TEMPLATES}/activity.html", title=_("Activity"), **found)

    @staticmethod
    def _part(name: str, viewer: Viewer, may_wait: bool = False) -> dict[str, Any]:
        """The context of a part. With `may_wait`, a part that is not ready has no template, and its slot is empty."""
        address = admin_url("scheduling_dashboard_part", name)
        if name == "schedules" and viewer.page != "1":
            address = f"{address}?{urlencode({'p': viewer.page})}"
        facts = {"name": name, "address": address, "seconds": PARTS[name].seconds}
        if may_wait and not PARTS[name].is_ready(viewer):
            return facts
        now = viewer.now.astimezone(viewer.zone)
        return {**facts, "template": f"{TEMPLATES}/{name}.html", "now": now, **PARTS[name].context(viewer)}
