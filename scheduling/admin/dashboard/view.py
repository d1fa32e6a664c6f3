"""The dashboard's page, and its parts one by one for the poller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from scheduling.admin.dashboard.attention import attention
from scheduling.admin.dashboard.heatmap import heatmap
from scheduling.admin.dashboard.running import running
from scheduling.admin.dashboard.schedules import schedules
from scheduling.admin.dashboard.tiles import tiles
from scheduling.admin.dashboard.timeline import timeline
from scheduling.admin.dashboard.viewer import Viewer
from scheduling.admin.parts import MEDIA
from scheduling.models.dashboard import Dashboard

TEMPLATES = "admin/scheduling/dashboard"


class Part(NamedTuple):
    """A part of the page: what it shows, and how often it is asked for anew."""

    context: Callable[[Viewer], dict[str, Any]]
    seconds: int


PARTS = {
    "tiles": Part(tiles, 5),
    "attention": Part(attention, 5),
    "running": Part(running, 5),
    "timeline": Part(timeline, 5),
    "schedules": Part(schedules, 10),
    # An hour's colour is no matter of seconds.
    "heatmap": Part(heatmap, 60),
}


@admin.register(Dashboard)
class DashboardAdmin(admin.ModelAdmin):
    """A sidebar entry with a permission of its own; there are no rows to add, change or delete."""

    @property
    def media(self) -> forms.Media:
        """The parts' style sheet, the dashboard's own, and the poller."""
        # Deferred: it stands in the head, and looks for what stands in the body.
        scripts = [forms.Script(f"scheduling/{name}.js", defer=True) for name in ("swap", "poll")]
        return MEDIA + forms.Media(css={"all": ["scheduling/dashboard.css"]}, js=scripts)  # type: ignore[arg-type]  # the stubs know only paths

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """By the model's own permission, for the page and each of its parts."""
        return request.user.has_perm("scheduling.view_dashboard")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Never."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never."""
        return False

    def get_urls(self) -> list[URLPattern]:
        """The page and its parts, and none of the stock pages, which would ask for a table."""
        wrap = self.admin_site.admin_view
        return [
            path("", wrap(self.changelist_view), name="scheduling_dashboard_changelist"),
            path("part/<slug:name>/", wrap(self.part_view), name="scheduling_dashboard_part"),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """All parts, as the database has them now."""
        viewer = self._viewer(request)
        if isinstance(viewer, HttpResponse):
            return viewer
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": self.media,
            "title": _("Dashboard"),
            "subtitle": None,
            "viewer": viewer,
            "parts": {name: self._part(name, viewer) for name in PARTS},
            **(extra_context or {}),
        }
        return TemplateResponse(request, f"{TEMPLATES}/page.html", context)

    def part_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """One part, without the page around it."""
        viewer = self._viewer(request)
        if isinstance(viewer, HttpResponse):
            return viewer
        if name not in PARTS:
            raise Http404
        response = TemplateResponse(request, f"{TEMPLATES}/{name}.html", {"part": self._part(name, viewer)})
        # The poller tells a part from a login page by it.
        response["X-Part"] = name
        return response

    def _viewer(self, request: HttpRequest) -> Viewer | HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD"])
        return Viewer.of(request)

    @staticmethod
    def _part(name: str, viewer: Viewer) -> dict[str, Any]:
        address = reverse("admin:scheduling_dashboard_part", args=[name])
        if name == "schedules" and viewer.page != "1":
            address = f"{address}?{viewer.page_query}"
        return {
            "name": name,
            "template": f"{TEMPLATES}/{name}.html",
            "address": address,
            "seconds": PARTS[name].seconds,
            "now": viewer.now.astimezone(viewer.zone),
            **PARTS[name].context(viewer),
        }
