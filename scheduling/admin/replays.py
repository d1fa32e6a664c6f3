"""Replays: those under way above the inbox, with a button that stops them, and all of them as a list."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone as clock
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduling import replay
from scheduling.admin.parts import EMPTY, MEDIA, shown, stamp, state_chip, when
from scheduling.admin.readonly import ReadOnly
from scheduling.admin.replay_lines import in_words, line, lines, replay_chip
from scheduling.admin.trail import record
from scheduling.models import Replay, SchedulerExecution

ITEMS = 50


@admin.register(Replay)
class ReplayAdmin(ReadOnly):
    """All replays; a row leads to its page. Who may see the inbox sees them."""

    list_display = ("started", "state_column", "progress", "selection_column", "who")
    list_display_links = ("started",)
    list_filter = ("state",)
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    ordering = ("-id",)
    sortable_by = ()
    list_per_page = 50

    @property
    def media(self) -> forms.Media:
        """The stock scripts and our style sheet."""
        return super().media + MEDIA

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Who may see the inbox."""
        return request.user.has_perm("scheduling.view_failedexecution")

    @admin.display(description=gettext_lazy("Started"))
    def started(self, row: Replay) -> str:
        """When it was asked for."""
        return stamp(row.created_at)

    @admin.display(description=gettext_lazy("State"))
    def state_column(self, row: Replay) -> str:
        """As a chip."""
        return replay_chip(row)

    @admin.display(description=gettext_lazy("Progress"))
    def progress(self, row: Replay) -> str:
        """How far it is, and why it went no further."""
        return format_html('{}<span class="sch-below sch-message">{}</span>', in_words(row), shown(row.reason, 200))

    @admin.display(description=gettext_lazy("Selection"))
    def selection_column(self, row: Replay) -> str:
        """What was chosen."""
        return shown(row.selection, 120)

    @admin.display(description=gettext_lazy("Requested by"))
    def who(self, row: Replay) -> str:
        """By name: the account may be gone."""
        return shown(row.requested_by, 60)

    def get_urls(self) -> list[URLPattern]:
        """The part for the poller, and the button, before the catch-all of the page."""
        wrap = self.admin_site.admin_view
        return [
            path("part/", wrap(self.part_view), name="scheduling_replay_part"),
            path("<path:object_id>/stop/", wrap(self.stop_view), name="scheduling_replay_stop"),
            *super().get_urls(),
        ]

    def part_view(self, request: HttpRequest) -> HttpResponse:
        """What is under way, without the page around it."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD"])
        found = lines(request, clock.now())
        # Asked by a page that was made while one was under way: what it lists is not as it was.
        context = {"replays": found, "ended": not any(each.is_open for each in found)}
        response = TemplateResponse(request, "admin/scheduling/replay/lines.html", context)
        response["X-Part"] = "replays"  # the poller tells a part from a login page by it
        return response

    def stop_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """POST stops it at once, without a page in between: what is saved by it cannot wait."""
        if not self.has_view_permission(request) or not request.user.has_perm("scheduling.republish_failedexecution"):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        row: Replay | None = self.get_object(request, unquote(object_id))
        if row is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined,no-any-return]
        if replay.stop(row.pk, f"Stopped by {request.user.get_username()}."):
            row.refresh_from_db()
            record(request, [row], f"stop: {row.sent} of {row.total} sent")
            text = _("It is stopped. %(words)s What was not sent stays in the inbox.") % {"words": in_words(row)}
            self.message_user(request, text, messages.SUCCESS)
        else:
            self.message_user(request, _("It had ended already; nothing was stopped."), messages.WARNING)
        back = "admin:scheduling_failedexecution_changelist" if request.POST.get("inbox") else ""
        return HttpResponseRedirect(reverse(back) if back else reverse("admin:scheduling_replay_change", args=[row.pk]))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Its page; there is nothing to post to it."""
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        row: Replay | None = self.get_object(request, unquote(object_id))
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        if row is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined,no-any-return]
        now = clock.now()
        found = line(request, row, now)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": MEDIA,
            "title": _("Replay %(id)s") % {"id": row.pk},
            "subtitle": None,
            "original": row,
            "line": found,
            "facts": [
                (_("Selection"), found.selection),
                (_("Requested by"), found.by),
                (_("Started"), found.started),
                (_("Canary"), found.canary),
                (_("Spread over, in minutes"), row.minutes or EMPTY),
                (_("Finished"), when(row.finished_at, now)),
            ],
            "items": _items(row),
            "more": max(row.total - ITEMS, 0),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/scheduling/replay/page.html", context)


def _items(row: Replay) -> list[tuple[str, str, SafeString | str]]:
    """The first of its executions as they stand now: address, name and state."""
    chunk = row.chunks.order_by("first").first()
    pairs = chunk.items[:ITEMS] if chunk is not None and isinstance(chunk.items, list) else []
    ids = [pair[0] for pair in pairs if isinstance(pair, list) and pair and isinstance(pair[0], int)]
    found = SchedulerExecution.objects.only("state", "type", "target_name", "execution_key").in_bulk(ids)
    return [
        (
            reverse("admin:scheduling_schedulerexecution_change", args=[pk]),
            shown(found[pk], 120) if pk in found else str(pk),
            state_chip(found[pk].state) if pk in found else _("removed by retention"),
        )
        for pk in ids
    ]
