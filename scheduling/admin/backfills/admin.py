"""The pages of backfills: a list, and a page for each one with its progress and its runs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone as clock
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from scheduling.admin.backfills.words import chip, in_words
from scheduling.admin.common.pages import Page
from scheduling.admin.common.read_only import ReadOnly
from scheduling.admin.common.viewer import Viewer
from scheduling.admin.ui.badges import state_badge
from scheduling.admin.ui.links import admin_url, execution_url, link, list_url, scheduler_url
from scheduling.admin.ui.times import EMPTY, time_tag, time_with_relative
from scheduling.core.backfill import read
from scheduling.core.known_sentences import for_reader
from scheduling.core.lifecycle import Trigger
from scheduling.core.text import visible_text
from scheduling.execution.backfill_record import on_record
from scheduling.models import Backfill
from scheduling.models.visibility import visibility_of
from scheduling.operations import backfills, schedules
from scheduling.operations.actor import Actor
from scheduling.operations.refused import Refused
from scheduling.operations.schedule_words import zone_named
from scheduling.operations.times import format_minute

ITEMS = 60


@admin.register(Backfill)
class BackfillAdmin(ReadOnly):
    """The list of backfills and the page of one, for users who may view schedules."""

    pages = (
        Page("pause", "backfill", methods=("POST",)),
        Page("resume", "backfill", methods=("POST",)),
        Page("cancel", "backfill", methods=("POST",)),
    )
    list_display = ("started", "state_column", "schedule_column", "range_column", "progress", "who")
    list_display_links = ("started",)
    list_filter = ("state",)
    sortable_by = ()
    no_rows = gettext_lazy("A backfill lets a schedule run afterwards for past times. There is none yet.")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Backfill]:
        visible = visibility_of(request.user)
        seen = super().get_queryset(request).filter(pk__in=visible.backfills().order_by().values("pk"))
        return visible.with_schedules(seen.defer("instants"))

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return any(request.user.has_perm(name) for name in schedules.VIEW)

    def has_backfill_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(backfills.BACKFILL)

    @admin.display(description=gettext_lazy("Started"))
    def started(self, row: Backfill) -> str:
        return time_tag(row.created_at)

    @admin.display(description=gettext_lazy("State"))
    def state_column(self, row: Backfill) -> str:
        return chip(row)

    @admin.display(description=gettext_lazy("Schedule"))
    def schedule_column(self, row: Backfill) -> str:
        return EMPTY if row.scheduler is None else visible_text(row.scheduler, 120)

    @admin.display(description=gettext_lazy("Range"))
    def range_column(self, row: Backfill) -> str:
        info = zone_named(row.timezone)
        return format_html(
            '{}<span class="sch-below">{}</span>', format_minute(row.since, info), format_minute(row.until, info)
        )

    @admin.display(description=gettext_lazy("Progress"))
    def progress(self, row: Backfill) -> str:
        return format_html('{}<span class="sch-below sch-message">{}</span>', in_words(row), for_reader(row.note, 200))

    @admin.display(description=gettext_lazy("Requested by"))
    def who(self, row: Backfill) -> str:
        """The user name as it was stored, because the account may have been deleted since."""
        return visible_text(row.requested_by, 60)

    def pause_view(self, request: HttpRequest, row: Backfill) -> HttpResponse:
        """POST pauses it at once."""
        return self._act(request, row, backfills.pause, _("It is paused."))

    def resume_view(self, request: HttpRequest, row: Backfill) -> HttpResponse:
        """POST lets it go on."""
        return self._act(request, row, backfills.resume, _("It goes on."))

    def cancel_view(self, request: HttpRequest, row: Backfill) -> HttpResponse:
        """POST ends it at once, without a confirmation page, because stopping is urgent."""
        return self._act(request, row, backfills.cancel, _("It is cancelled. The runs that it has made go on."))

    def _act(
        self, request: HttpRequest, row: Backfill, act: Callable[[Actor, int], Backfill], said: str
    ) -> HttpResponse:
        try:
            act(Actor(request.user), row.pk)
        except Refused as refused:
            self.message_user(request, refused.said, messages.WARNING)
        else:
            self.message_user(request, said, messages.SUCCESS)
        return HttpResponseRedirect(admin_url("scheduling_backfill_change", row.pk))

    @method_decorator(require_safe)
    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The backfill's page, read-only."""
        return self.with_row(request, object_id, self._page, extra_context or {})

    def _page(self, request: HttpRequest, row: Backfill, extra_context: dict[str, Any]) -> HttpResponse:
        now, viewer = clock.now(), Viewer.of(request)
        may = self.has_backfill_permission(request)
        state, states = row.state, Backfill.State
        items = _items(row, viewer)
        context = {
            "title": _("Backfill %(id)s") % {"id": row.pk},
            "original": row,
            "chip": chip(row),
            "words": in_words(row),
            "note": for_reader(row.note, 500),
            "may_pause": may and state == states.RUNNING.value,
            "may_resume": may and state == states.PAUSED.value,
            "may_cancel": may and row.is_open,
            "runs": _runs(row, viewer),
            "facts": _facts(row, now),
            "items": items,
            "more": max(row.total - len(items), 0),
            **extra_context,
        }
        return self.page_response(request, "admin/scheduling/backfill/page.html", **context)


def _runs(row: Backfill, viewer: Viewer) -> str:
    """The address of the list of the runs that backfills have made for the schedule; empty if it cannot be shown."""
    if row.scheduler is None or not viewer.sees("schedulerexecution"):
        return ""
    return list_url("schedulerexecution", scheduler=row.scheduler.pk, trigger=Trigger.BACKFILL.value)


def _facts(row: Backfill, now: datetime) -> list[tuple[str, Any]]:
    info = zone_named(row.timezone)
    schedule = row.scheduler
    name = _("deleted, or of another group")
    found: list[tuple[str, Any]] = [
        (_("Schedule"), name if schedule is None else link(scheduler_url(schedule.pk), visible_text(schedule, 120))),
        (_("From"), format_minute(row.since, info)),
        (_("Until"), format_minute(row.until, info)),
        (_("Made"), row.created),
        (_("On record already"), row.existing),
        (_("Order"), _("the newest first") if row.newest_first else _("the oldest first")),
        (_("Runs per minute"), row.per_minute),
        (_("Overlap policy"), _("obeyed") if row.obey_overlap else _("not obeyed")),
        (_("Also runs what has run"), _("yes") if row.also_ran else _("no")),
        (_("Requested by"), visible_text(row.requested_by, 150) or EMPTY),
        (_("Started"), time_with_relative(row.created_at, now)),
        (_("Finished"), time_with_relative(row.finished_at, now)),
    ]
    return [*found, (_("Reason"), visible_text(row.reason, 500))] if row.reason else found


def _items(row: Backfill, viewer: Viewer) -> list[tuple[str, str, SafeString | str]]:
    """The first instants, each as the address of its run, its time and its state."""
    try:
        instants = read(row.instants)[:ITEMS]
    except (TypeError, OverflowError):
        return []  # plain SQL has damaged the list; the sweep stops the backfill, and says so
    known = on_record(row.scheduler.pk, instants) if row.scheduler is not None else None
    info, found = zone_named(row.timezone), list[tuple[str, str, SafeString | str]]()
    shown = viewer.visible.executions() if viewer.sees("schedulerexecution") else None
    keys = [one.pk for one in known.made.values()] + [one.pk for one in known.ran.values()] if known else []
    seen = set(shown.filter(pk__in=keys).values_list("pk", flat=True)) if shown is not None and keys else set[int]()
    for number, instant in enumerate(instants):
        one = (known.made.get(instant) or known.ran.get(instant)) if known is not None else None
        at = format_minute(instant, info)
        if one is not None and one.pk in seen:
            found.append((execution_url(one.pk), at, state_badge(one.state)))
        else:
            found.append(("", at, "" if number < row.position else _("not made yet")))
    return found
