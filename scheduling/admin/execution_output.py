"""Output of an execution: the download, and the answers to a page that follows while it runs."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse, StreamingHttpResponse
from django.template.loader import render_to_string
from django.urls import URLPattern, path
from django.utils import timezone as clock

from scheduling.admin import execution_page
from scheduling.admin.chips import STATES
from scheduling.admin.execution_page import is_over
from scheduling.admin.output import Cursor, after, download
from scheduling.admin.output_lines import Wanted
from scheduling.admin.parts import MEDIA
from scheduling.core.lifecycle import State
from scheduling.models import SchedulerExecution

# Deferred: they stand in the head, and look for what stands in the body.
_SCRIPTS = [forms.Script(f"scheduling/{name}.js", defer=True) for name in ("swap", "follow")]

PAGE_MEDIA = MEDIA + forms.Media(
    css={"all": ["scheduling/execution.css"]},
    js=_SCRIPTS,  # type: ignore[arg-type]  # the stubs know only paths
)
"""The page's style sheet and scripts."""

STATE_SECONDS = 5
"""What the page says of the state is sent again so often though nothing changed: it tells times from now."""

_COLUMNS = ("state", "attempt", "progress", "pid", "published_at", "cancel_requested_by", "reason")


def version_of(row: dict[str, Any], now: datetime) -> str:
    """Tells whether what a page shows of the state is out of date."""
    beat = 0 if is_over(row["state"]) else int(now.timestamp()) // STATE_SECONDS
    return hashlib.sha1(repr((beat, *row.values())).encode(errors="replace"), usedforsecurity=False).hexdigest()[:16]


def following(row: SchedulerExecution, now: datetime) -> dict[str, Any]:
    """What the page's script begins with."""
    version = version_of({name: getattr(row, name) for name in _COLUMNS}, now)
    return {"version": version, "said": _word(row.state)}


class ExecutionOutput(admin.ModelAdmin):
    """Gives the executions' admin the two views."""

    def get_urls(self) -> list[URLPattern]:
        """They stand beside the page."""
        views = [("output", self.output_view), ("follow", self.follow_view)]
        wrap, name = self.admin_site.admin_view, "scheduling_schedulerexecution_"
        own = [path(f"<path:object_id>/{each}/", wrap(view), name=name + each) for each, view in views]
        return [*own, *super().get_urls()]

    def output_view(self, request: HttpRequest, object_id: str) -> HttpResponse | StreamingHttpResponse:
        """All stored output as text, never as anything that a browser would run."""
        row = self.get_object(request, unquote(object_id))
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        if row is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined,no-any-return]
        attempt = Wanted.of(request.GET).attempt
        name = f"execution-{row.pk}.txt" if attempt is None else f"execution-{row.pk}-{attempt}.txt"
        response = StreamingHttpResponse(download(row.pk, attempt), content_type="text/plain; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="{name}"'
        response["X-Content-Type-Options"] = "nosniff"
        return response

    def follow_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """What was printed after the cursor `after`, and the state's part of the page if `version` is not it any more.

        JSON: `groups` (attempt and lines as HTML), `cursor`, `more` (ask again at once), `over`, `version`,
        `attempts`, `said` (the state's word), `state` (HTML or null).
        """
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        if not self.has_view_permission(request):
            raise PermissionDenied
        key, now = unquote(object_id), clock.now()
        rows = SchedulerExecution.objects.filter(
            pk=int(key) if key.isascii() and key.isdecimal() and len(key) < 19 else -1
        )
        # The state before the output: what a run printed last is committed together with its end.
        found = rows.values(*_COLUMNS).first()
        if found is None:
            return JsonResponse({"gone": True}, status=404)
        version = version_of(found, now)
        lines = after(int(key), Cursor.of(request.GET.get("after", "")), Wanted.of(request.GET))
        response = JsonResponse(
            {
                "groups": lines.groups,
                "cursor": str(lines.cursor),
                "more": lines.cut,
                "over": is_over(found["state"]),
                "version": version,
                "attempts": found["attempt"],
                "said": _word(found["state"]),
                "state": None if request.GET.get("version") == version else self._state_html(request, key, now),
            }
        )
        response["Cache-Control"] = "no-store"
        return response

    def _state_html(self, request: HttpRequest, key: str, now: datetime) -> str | None:
        row = self.get_object(request, key)
        if row is None:
            return None
        request.current_app = self.admin_site.name
        context = {"opts": self.opts, **execution_page.state_context(request, row, now)}
        return render_to_string("admin/scheduling/schedulerexecution/state.html", context, request)


def _word(state: str) -> str:
    return str(STATES[State(state)][0]) if state in STATES else state
