"""The columns of the list of Schedulers."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ORDER_VAR, ChangeList
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone as clock
from django.utils.formats import number_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduling.admin.common.filter_bar import add_notes
from scheduling.admin.common.viewer import Viewer
from scheduling.admin.schedulers.health_filter import HealthFilter
from scheduling.admin.stats.run_bars import bars
from scheduling.admin.stats.runs import told_at
from scheduling.admin.ui.badges import health_badge, registered_badge, state_badge
from scheduling.admin.ui.links import execution_url
from scheduling.admin.ui.paginators import KeyPaginator
from scheduling.admin.ui.schedules import in_words, plan_error_badge, zone_of
from scheduling.admin.ui.times import EMPTY, due_words, relative_time_tag, time_tag
from scheduling.core.cron import CronError, ZoneError, zone
from scheduling.core.known_sentences import for_reader
from scheduling.core.targets import TARGETS
from scheduling.core.text import visible_text
from scheduling.handlers.targets import handler_of
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models import health as health_rules
from scheduling.models.health import ORDER, RANK, health_of, last_results, may_sort, with_health
from scheduling.models.labels import TYPES
from scheduling.models.last_runs import last_runs
from scheduling.models.visibility import visibility_of


def breakable(zone_name: str) -> SafeString:
    """The name of a zone. In a narrow column, the browser may break it after a slash."""
    return format_html_join(mark_safe("/<wbr>"), "{}", ((part,) for part in visible_text(zone_name).split("/")))


class SchedulerList(ChangeList):
    """Sets `last_execution`, `bars` and `looked_at` on each row of the page."""

    def get_ordering(self, request: HttpRequest, queryset: QuerySet) -> list[Any]:
        """The most urgent health first, then by name, unless the user sorts by columns or there are too many."""
        if ORDER_VAR in self.params:
            return super().get_ordering(request, queryset)
        if may_sort(visibility_of(request.user)):
            # A list that is filtered by health need not be sorted by it, which would find each health once more.
            return [name for name in ORDER if name != RANK or HealthFilter.parameter_name not in request.GET]
        most = number_format(health_rules.SORTED_SCHEDULES, force_grouping=True)
        said = _("There are more than %(count)s schedules, so they are sorted by number. Filter by health.")
        add_notes(request, [said % {"count": most}])
        return ["pk"]

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        keys = self._keys()
        found = self.root_queryset.in_bulk(keys)
        rows = [found[pk] for pk in keys if pk in found]
        viewer = Viewer.of(request)
        latest = last_results([row.pk for row in rows], viewer.visible)
        runs = last_runs([row.pk for row in rows], viewer.visible) if viewer.sees("schedulerexecution") else {}
        for row in rows:
            row.last_execution = latest.get(row.pk)
            row.bars = bars(runs[row.pk], viewer, zone_of(row)) if runs.get(row.pk) else ""
            row.looked_at = viewer.now
        self.result_list = rows

    def _keys(self) -> list[int]:
        """The keys of this page. The database sorts keys faster than rows. Then it reads the rows of this page only."""
        if not isinstance(self.paginator, KeyPaginator):
            return list(self.result_list.prefetch_related(None).values_list("pk", flat=True))
        if self.show_all and self.can_show_all:
            return self.paginator.keys
        page = self.paginator.page(self.page_num)
        return self.paginator.keys[page.start_index() - 1 : page.end_index()] if self.paginator.count else []


class SchedulerColumns(admin.ModelAdmin):
    """Columns of the list, and the summary line of a schedule's own page."""

    list_display = (
        "name_column", "health", "target_column", "schedule_column", "next_column", "last_column",
    )  # fmt: skip
    list_display_links = ("name_column",)
    list_select_related = ()
    list_per_page = 50
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    ordering = ("id",)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return SchedulerList

    def get_paginator(self, request: HttpRequest, *args: Any, **options: Any) -> Paginator:
        """For a list that is filtered by health, the paginator that applies the filter only once."""
        if HealthFilter.parameter_name in request.GET and may_sort(visibility_of(request.user)):
            return KeyPaginator(*args, **options)
        found: Paginator = super().get_paginator(request, *args, **options)
        return found

    def get_queryset(self, request: HttpRequest) -> QuerySet[Scheduler]:
        """Fetches the targets in separate queries. With a join, the database would sort the whole table."""
        rows = visibility_of(request.user).only(super().get_queryset(request))
        return with_health(rows, clock.now()).prefetch_related(*TARGETS)

    @admin.display(description=gettext_lazy("Health"), ordering="health_rank")
    def health(self, row: Scheduler) -> str:
        """The health, the reason of a pause, and the last runs as bars."""
        why = for_reader(row.paused_because, 120)
        return format_html(
            '{}{}<span class="sch-below sch-row-bars">{}</span>',
            health_badge(health_of(row)),
            format_html('<span class="sch-quiet sch-below sch-message">{}</span>', why) if why else "",
            getattr(row, "bars", ""),
        )

    @admin.display(description=gettext_lazy("Description"), ordering="description")
    def name_column(self, row: Scheduler) -> str:
        return visible_text(row, 120)

    @admin.display(description=gettext_lazy("Target"))
    def target_column(self, row: Scheduler) -> str:
        if row.target is None:
            return EMPTY
        known = handler_of(row) is not None
        return format_html(
            '{}<span class="sch-quiet sch-below">{}</span>{}',
            visible_text(row.target, 80),
            TYPES.get(row.target_type, row.target_type),
            "" if known else registered_badge(row.target_type, getattr(row.target, "handler_name", "")),
        )

    @admin.display(description=gettext_lazy("Times"))
    def schedule_column(self, row: Scheduler) -> str:
        try:
            words = in_words(row)
        except (CronError, ZoneError):
            return format_html("<code>{}</code>", visible_text(row.schedule, 80))
        if row.date_time is not None:
            return words
        return format_html(
            '<span lang="en" title="{}">{}</span><code class="sch-below sch-cron-text">{}</code>'
            '<span class="sch-quiet sch-below">{}</span>',
            row.schedule,
            words,
            visible_text(row.schedule, 80),
            breakable(row.zone_name),
        )

    @admin.display(description=gettext_lazy("Next run"), ordering="next_run_at")
    def next_column(self, row: Scheduler) -> str:
        """When the next run is due, as an instant and relative to now; or the reason why planning failed."""
        if row.plan_error:
            return format_html(
                '{}<span class="sch-below sch-error">{}</span>',
                plan_error_badge(row),
                for_reader(row.plan_error, 160),
            )
        if row.next_run_at is None:
            return EMPTY
        now: datetime = getattr(row, "looked_at", None) or clock.now()
        try:
            info = zone(row.zone_name)
        except ZoneError:
            return time_tag(row.next_run_at)
        below = format_html('<span class="sch-quiet sch-below">{}</span>', time_tag(row.next_run_at, info))
        return format_html("{}{}", self._how_long(row, row.next_run_at, now), below)

    @admin.display(description=gettext_lazy("Last result"))
    def last_column(self, row: Scheduler) -> str:
        """The state of the latest execution that says something about the health, as a link to the execution's page."""
        last: SchedulerExecution | None = getattr(row, "last_execution", None)
        if last is None:
            return format_html('<span class="sch-quiet">{}</span>', _("never ran"))
        address = execution_url(last.pk)
        return format_html(
            '<a class="sch-chip-link" href="{}">{}</a><span class="sch-quiet sch-below">{}</span>',
            address,
            state_badge(last.state),
            relative_time_tag(told_at(last), getattr(row, "looked_at", None), zone_of(row)),
        )

    def standing(self, row: Scheduler) -> SafeString:
        """The summary line of a schedule: its times, the reason of a pause, the next run and the last result."""
        try:
            words = in_words(row)
        except (CronError, ZoneError):
            words = visible_text(row.schedule, 80)
        zone_name = "" if row.date_time is not None else f"({visible_text(row.zone_name, 64)})"
        parts = [
            (words, zone_name),
            *([(_("Reason for the pause:"), for_reader(row.paused_because))] if row.paused_because else []),
            (_("Next run:"), _("none") if row.next_run_at is None else self._inline(row, row.next_run_at)),
            (_("Last result:"), self.last_column(row)),
        ]
        return format_html_join("", "<span>{} {}</span>", parts)

    @staticmethod
    def _how_long(row: Scheduler, instant: datetime, now: datetime) -> SafeString | str:
        if not row.is_overdue(now):
            return due_words(instant, now)
        why = _("No producer has claimed it. Is manage.py run_scheduler running?")
        return format_html('<span class="sch-error" title="{}">{}</span>', why, due_words(instant, now))

    def _inline(self, row: Scheduler, instant: datetime) -> SafeString:
        try:
            info: tzinfo = zone(row.zone_name)
        except ZoneError:
            info = UTC
        return format_html(
            "<strong>{}</strong> ({})", self._how_long(row, instant, clock.now()), time_tag(instant, info)
        )
