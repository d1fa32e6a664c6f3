"""The list of Schedulers: its columns, and each row's last execution."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone as clock
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduling.admin.around import OVERDUE_AFTER
from scheduling.admin.parts import EMPTY, active_chip, chip, registered_chip, relative, shown, stamp, state_chip
from scheduling.admin.scheduler_panels import handler_of, in_words, plan_chip
from scheduling.core.cron import CronError, ZoneError, zone
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.scheduler import TARGETS


def last_executions(ids: list[int]) -> dict[int, SchedulerExecution]:
    """The latest execution of each schedule, in two queries whatever the length of the history.

    The look for the latest key stands in the select list and is made for these ids only: one step
    in the index (scheduler, -id) each. A GROUP BY would read every key of their histories.
    """
    latest = SchedulerExecution.objects.filter(scheduler=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    found = (
        Scheduler.objects.filter(pk__in=ids).order_by().annotate(last=Subquery(latest)).values_list("last", flat=True)
    )
    rows = SchedulerExecution.objects.only("state", "scheduler_id", "scheduled_at", "finished_at", "missed")
    return {row.scheduler_id: row for row in rows.filter(pk__in=[pk for pk in found if pk])}  # type: ignore[misc]


class SchedulerList(ChangeList):
    """Gives each row of the page its last execution."""

    def get_results(self, request: HttpRequest) -> None:
        """Fetch the page, then what belongs to it."""
        super().get_results(request)
        rows = list(self.result_list)
        latest = last_executions([row.pk for row in rows])
        now = clock.now()
        for row in rows:
            row.last_execution = latest.get(row.pk)
            row.looked_at = now
        self.result_list = rows


class SchedulerColumns(admin.ModelAdmin):
    """What the list shows of each row."""

    list_display = (
        "name", "target_column", "schedule_column", "zone_column", "next_column", "last_column", "active",
    )  # fmt: skip
    list_display_links = ("name",)
    list_select_related = ()
    list_per_page = 50
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    ordering = ("id",)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """Rows with their last execution."""
        return SchedulerList

    def get_queryset(self, request: HttpRequest) -> QuerySet[Scheduler]:
        """With the targets in a query each; a join would have the database sort the whole table."""
        return super().get_queryset(request).prefetch_related(*TARGETS)

    @admin.display(description=gettext_lazy("Description"), ordering="description")
    def name(self, row: Scheduler) -> str:
        """What it is called."""
        return shown(row, 120)

    @admin.display(description=gettext_lazy("Target"))
    def target_column(self, row: Scheduler) -> str:
        """Name and kind."""
        if row.target is None:
            return EMPTY
        known = handler_of(row) is not None
        return format_html(
            '{}<span class="sch-quiet sch-below">{}</span>{}',
            shown(row.target, 80),
            row.target_type,
            "" if known else registered_chip(row.target_type, getattr(row.target, "handler_name", "")),
        )

    @admin.display(description=gettext_lazy("Schedule"))
    def schedule_column(self, row: Scheduler) -> str:
        """In words, with the expression below."""
        try:
            words = in_words(row)
        except (CronError, ZoneError):
            return format_html("<code>{}</code>", shown(row.schedule, 80))
        if row.date_time is not None:
            return words
        return format_html(
            '<span lang="en" title="{}">{}</span><code class="sch-below sch-cron-text">{}</code>',
            row.schedule,
            words,
            shown(row.schedule, 80),
        )

    @admin.display(description=gettext_lazy("Zone"), ordering="timezone")
    def zone_column(self, row: Scheduler) -> str:
        """The zone in force."""
        # A narrow column may break the name where a reader would.
        return format_html_join(mark_safe("/<wbr>"), "{}", ((part,) for part in shown(row.zone_name).split("/")))

    @admin.display(description=gettext_lazy("Next run"), ordering="next_run_at")
    def next_column(self, row: Scheduler) -> str:
        """How long until then, and when; or why never."""
        if row.plan_error:
            return format_html(
                '{}<span class="sch-below sch-error">{}</span>', plan_chip(row), shown(row.plan_error, 160)
            )
        if row.next_run_at is None:
            return EMPTY
        now: datetime = getattr(row, "looked_at", None) or clock.now()
        try:
            info = zone(row.zone_name)
        except ZoneError:
            return stamp(row.next_run_at)
        below = format_html('<span class="sch-quiet sch-below">{}</span>', stamp(row.next_run_at, info))
        return format_html("{}{}", self._how_long(row.next_run_at, now), below)

    @admin.display(description=gettext_lazy("Last result"))
    def last_column(self, row: Scheduler) -> str:
        """The state of its latest execution, which leads there."""
        last: SchedulerExecution | None = getattr(row, "last_execution", None)
        if last is None:
            return format_html('<span class="sch-quiet">{}</span>', _("never ran"))
        address = reverse("admin:scheduling_schedulerexecution_change", args=[last.pk])
        at = last.finished_at or last.scheduled_at
        return format_html(
            '<a class="sch-chip-link" href="{}">{}</a><span class="sch-quiet sch-below">{}</span>',
            address,
            state_chip(last.state),
            relative(at, getattr(row, "looked_at", None)),
        )

    @admin.display(description=gettext_lazy("Active"), ordering="status")
    def active(self, row: Scheduler) -> str:
        """On or off, and why."""
        if not row.paused_because:
            return active_chip(row.status)
        why = shown(row.paused_because, 120)
        return format_html('{}<span class="sch-quiet sch-below sch-message">{}</span>', active_chip(row.status), why)

    def standing(self, row: Scheduler) -> SafeString:
        """One line for the row's own page: on or off, when it runs next, how it went last."""
        parts = [
            ("", active_chip(row.status)),
            *([(_("Reason for the pause:"), shown(row.paused_because))] if row.paused_because else []),
            (_("Next run:"), _("none") if row.next_run_at is None else self._inline(row, row.next_run_at)),
            (_("Last result:"), self.last_column(row)),
        ]
        return format_html_join("", "<span>{} {}</span>", parts)

    @staticmethod
    def _how_long(instant: datetime, now: datetime) -> SafeString | str:
        if instant > now - OVERDUE_AFTER:
            return relative(instant, now)
        why = _("No producer has claimed it. Is manage.py run_scheduler running?")
        return format_html("{} {}", chip(_("overdue"), "warn", "bad", why), relative(instant, now))

    def _inline(self, row: Scheduler, instant: datetime) -> SafeString:
        try:
            info: tzinfo = zone(row.zone_name)
        except ZoneError:
            info = UTC
        return format_html("<strong>{}</strong> ({})", self._how_long(instant, clock.now()), stamp(instant, info))
