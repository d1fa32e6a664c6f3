"""The pages of replays: a list, a page for each replay, and a panel above the failed inbox.

The panel shows open and recently finished replays. Each open replay has a button that stops the replay.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils import timezone as clock
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from scheduling.admin.common.pages import READ, Page
from scheduling.admin.common.read_only import ReadOnly
from scheduling.admin.replays.outcome import ending, is_pair
from scheduling.admin.replays.rows import in_words, lines, replay_chip, shown
from scheduling.admin.ui.badges import state_badge
from scheduling.admin.ui.execution_names import execution_title
from scheduling.admin.ui.links import admin_url, execution_url, list_url
from scheduling.admin.ui.times import EMPTY, time_tag, time_with_relative
from scheduling.core.history_sentences import selection_in_language
from scheduling.core.inbox_sentences import STOPPED_BY
from scheduling.core.known_sentences import for_reader
from scheduling.core.text import visible_text
from scheduling.inbox import replay
from scheduling.models import Replay, SchedulerExecution
from scheduling.models.visibility import Visibility, visibility_of
from scheduling.operations.audit import record

ITEMS = 50


@admin.register(Replay)
class ReplayAdmin(ReadOnly):
    """The list of replays and the page of a replay, for users who may view the inbox."""

    pages = (Page("part", "view", "part/", READ), Page("stop", "republish", methods=("POST",)))
    list_display = ("started", "state_column", "progress", "selection_column", "who")
    list_display_links = ("started",)
    list_filter = ("state",)
    sortable_by = ()
    no_rows = gettext_lazy("A replay is a republish of many failures, one of which goes first. There is none yet.")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Replay]:
        """The replays whose executions the user all sees."""
        seen = visibility_of(request.user).replays()
        return super().get_queryset(request).filter(pk__in=seen.order_by().values("pk"))

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("scheduling.view_failedexecution")

    def has_republish_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("scheduling.republish_failedexecution")

    @admin.display(description=gettext_lazy("Started"))
    def started(self, row: Replay) -> str:
        return time_tag(row.created_at)

    @admin.display(description=gettext_lazy("State"))
    def state_column(self, row: Replay) -> str:
        return replay_chip(row)

    @admin.display(description=gettext_lazy("Progress"))
    def progress(self, row: Replay) -> str:
        return format_html(
            '{}<span class="sch-below sch-message">{}</span>', in_words(row), for_reader(row.reason, 200)
        )

    @admin.display(description=gettext_lazy("Selection"))
    def selection_column(self, row: Replay) -> str:
        return visible_text(selection_in_language(row.selection), 120)

    @admin.display(description=gettext_lazy("Requested by"))
    def who(self, row: Replay) -> str:
        """The user name as it was stored, because the account may have been deleted since."""
        return visible_text(row.requested_by, 60)

    def part_view(self, request: HttpRequest) -> HttpResponse:
        """Open and recently finished replays as an HTML fragment, which the script poll.js fetches."""
        found = lines(request, clock.now())
        # The page around the panel was rendered while a replay was open. If no replay is open now, the page's list of
        # failures is out of date.
        context = {"replays": found, "ended": not any(entry.is_open for entry in found)}
        # The script recognises the panel by this header. A login page does not have the header.
        headers = {"X-Part": "replays"}
        return TemplateResponse(request, "admin/scheduling/replay/lines.html", context, headers=headers)

    def stop_view(self, request: HttpRequest, row: Replay) -> HttpResponse:
        """POST stops the replay at once, without a confirmation page, because stopping is urgent."""
        if replay.stop(row.pk, STOPPED_BY.format(by=request.user.get_username())):
            row.refresh_from_db()
            record(request, [row], f"stop: {row.sent} of {row.total} sent")
            text = _("It is stopped. %(words)s What was not sent stays in the inbox.") % {"words": in_words(row)}
            self.message_user(request, text, messages.SUCCESS)
        else:
            self.message_user(request, _("It had ended already; nothing was stopped."), messages.WARNING)
        own = admin_url("scheduling_replay_change", row.pk)
        return HttpResponseRedirect(list_url("failedexecution") if request.POST.get("inbox") else own)

    @method_decorator(require_safe)
    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The replay's page, read-only."""
        return self.with_row(request, object_id, self._page, extra_context or {})

    def _page(self, request: HttpRequest, row: Replay, extra_context: dict[str, Any]) -> HttpResponse:
        now = clock.now()
        (found,) = shown(request, [row], now)
        context = {
            "title": _("Replay %(id)s") % {"id": row.pk},
            "original": row,
            "line": found,
            "facts": [
                (_("Selection"), found.selection),
                (_("Requested by"), found.by),
                (_("Started"), found.started),
                (_("Canary"), found.canary),
                (_("Spread over (minutes)"), row.minutes or EMPTY),
                (_("Finished"), time_with_relative(row.finished_at, now)),
            ],
            "items": _items(row, now, visibility_of(request.user)),
            "more": max(row.total - ITEMS, 0),
            **extra_context,
        }
        return self.page_response(request, "admin/scheduling/replay/page.html", **context)


def _items(row: Replay, now: datetime, visible: Visibility) -> list[tuple[str, str, SafeString | str]]:
    """The first executions of the replay, each as a URL, a name and the present state."""
    chunk = row.chunks.order_by("first").first()
    pairs = chunk.items[:ITEMS] if chunk is not None and isinstance(chunk.items, list) else []
    attempts = {pair[0]: pair[1] for pair in pairs if is_pair(pair)}
    columns = ("state", "attempt", "type", "target_name", "scheduled_at", "scheduler")
    found = visible.with_schedules(visible.executions().only(*columns)).in_bulk(list(attempts))
    return [
        (
            execution_url(pk),
            execution_title(found[pk], now) if pk in found else str(pk),
            _standing(found[pk], before) if pk in found else _("removed by retention"),
        )
        for pk, before in attempts.items()
    ]


def _standing(row: SchedulerExecution, before: int) -> SafeString | str:
    """The execution's state. Before the replay sends it, it still has its old failure, which is not shown as a result.

    Args:
        before: the number of the execution's last attempt before the replay.
    """
    return state_badge(row.state) if ending(row.state, row.attempt, before) else _("still in the inbox")
