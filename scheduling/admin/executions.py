"""Executions: what ran, runs, waits, and was skipped, with the reason; a page for each."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import ChangeList
from django.contrib.admin.widgets import AutocompleteSelect
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone as clock
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduling.admin import execution_page
from scheduling.admin.execution_actions import ExecutionActions
from scheduling.admin.execution_output import PAGE_MEDIA, ExecutionOutput, following
from scheduling.admin.filters import TRIGGERS, SchedulerFilter, StateFilter, TriggerFilter, TypeFilter, WithinFilter
from scheduling.admin.paging import CappedPaginator
from scheduling.admin.parts import EMPTY, MEDIA, shown, stamp, state_chip, took, when
from scheduling.admin.readonly import ReadOnly
from scheduling.core.lifecycle import State
from scheduling.models import SchedulerExecution
from scheduling.models.scheduler import TARGETS

SCHEDULER = [f"scheduler__{target}" for target in TARGETS]

SEARCHED = 100_000
"""Executions that a search looks through unless it is one schedule's: no index serves it, and each would
cost every claim."""

KEY_PREFIXES = ("cron-", "date-", "manual-")


def search(queryset: QuerySet, term: str) -> QuerySet:
    """What a term means is told by its form, so that one column is asked, and not four.

    Digits are an execution's id; forty hexadecimal digits an error group; what begins as an
    execution key does, a key; all else the beginning of a target's name.
    """
    term = term.strip()
    if term.isascii() and term.isdecimal() and len(term) < 19:
        return queryset.filter(pk=int(term))
    if len(term) == 40 and set(term.lower()) <= set("0123456789abcdef"):
        return queryset.filter(fingerprint=term.lower())
    if term.startswith(KEY_PREFIXES):
        return queryset.filter(execution_key__startswith=term)
    return queryset.filter(Q(target_name__istartswith=term))


def newest(queryset: QuerySet, count: int) -> QuerySet:
    """Those of a queryset that are among the newest rows of the whole table."""
    last = SchedulerExecution.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    return queryset.filter(pk__gt=last - count)


class ExecutionList(ChangeList):
    """Leaves out the wide columns, and looks at the clock once."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet:
        """Without what the list does not show: parameters and messages are most of a row."""
        return super().get_queryset(request, exclude_parameters).defer("params", "error_message", "reason")

    def get_results(self, request: HttpRequest) -> None:
        """One "now" for all rows, so that they can be compared."""
        super().get_results(request)
        now = clock.now()
        few: list[int] | None = getattr(self.paginator, "few", None)
        self.result_list = list(self.result_list if few is None else self.queryset.filter(pk__in=few))
        for row in self.result_list:
            row.looked_at = now


@admin.register(SchedulerExecution)
class ExecutionAdmin(ExecutionOutput, ExecutionActions, ReadOnly):
    """The list is made for a table of millions (facts: no join, no date hierarchy, a capped count)."""

    list_display = (
        "id", "state_column", "target_column", "scheduled_column", "started_column", "attempt",
        "trigger_column",
    )  # fmt: skip
    list_display_links = ("id",)
    list_filter = (StateFilter, WithinFilter, TypeFilter, TriggerFilter, SchedulerFilter)
    list_select_related = ()
    search_fields = ("=id", "^execution_key", "^target_name", "=fingerprint")
    search_help_text = gettext_lazy(
        "An id, the beginning of an execution key or of a target's name, or an error group. All but an id is looked "
        "for among the newest 100,000 executions; choose a schedule among the filters to look through all of its own."
    )
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = CappedPaginator
    ordering = ("-id",)
    sortable_by = ("id",)
    list_per_page = 50

    @property
    def media(self) -> Any:
        """Our style sheet, and what the filter by schedule needs."""
        field = SchedulerExecution._meta.get_field("scheduler")
        return super().media + AutocompleteSelect(field, self.admin_site).media + MEDIA

    def get_queryset(self, request: HttpRequest) -> QuerySet[SchedulerExecution]:
        """The schedules in a query of their own: MariaDB would sort all executions to join a few schedules."""
        return super().get_queryset(request).prefetch_related("scheduler", *SCHEDULER)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """The narrow list."""
        return ExecutionList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[SchedulerExecution], search_term: str
    ) -> tuple[QuerySet[SchedulerExecution], bool]:
        """One column by the term's form; see `search`."""
        term = search_term.strip()
        if not term:
            return queryset, False
        bounded = term.isdecimal() or SchedulerFilter.parameter_name in request.GET
        return search(queryset if bounded else newest(queryset, SEARCHED), term), False

    # --- columns ------------------------------------------------------------------------------

    @admin.display(description=gettext_lazy("State"))
    def state_column(self, row: SchedulerExecution) -> str:
        """As a chip."""
        return state_chip(row.state)

    @admin.display(description=gettext_lazy("Target and schedule"))
    def target_column(self, row: SchedulerExecution) -> str:
        """What ran, and the way to the schedule that says so."""
        name = shown(row.target_name or row.type or EMPTY, 80)
        if row.scheduler is None:
            return name
        address = reverse("admin:scheduling_scheduler_change", args=[row.scheduler_id])
        return format_html('{}<a class="sch-below" href="{}">{}</a>', name, address, shown(row.scheduler, 60))

    @admin.display(description=gettext_lazy("Scheduled"))
    def scheduled_column(self, row: SchedulerExecution) -> str:
        """In UTC, and from now."""
        return when(row.scheduled_at, getattr(row, "looked_at", None))

    @admin.display(description=gettext_lazy("Started, took"))
    def started_column(self, row: SchedulerExecution) -> str:
        """The start of the last attempt, and how long it took; so far, while it runs."""
        if row.started_at is None:
            return EMPTY
        running = row.state == State.RUNNING.value
        duration = took(row.started_at, getattr(row, "looked_at", None) if running else row.finished_at)
        return format_html('{}<span class="sch-below">{}</span>', stamp(row.started_at), duration)

    @admin.display(description=gettext_lazy("Trigger and key"))
    def trigger_column(self, row: SchedulerExecution) -> str:
        """What asked for it, who, and the execution key."""
        word = dict(TRIGGERS).get(row.trigger, row.trigger)
        who = shown(row.requested_by, 40)
        said = _("%(trigger)s (%(who)s)") % {"trigger": word, "who": who} if who else word
        return format_html('{}<code class="sch-below sch-key">{}</code>', said, shown(row.execution_key))

    # --- the page -----------------------------------------------------------------------------

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The execution's page; there is nothing to post to it."""
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        row = self.get_object(request, unquote(object_id))
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        if row is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined,no-any-return]
        request.current_app, now = self.admin_site.name, clock.now()
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": PAGE_MEDIA,
            "title": _("Execution %(id)s") % {"id": row.pk},
            "subtitle": None,
            "original": row,
            "preserved_filters": self.get_preserved_filters(request),
            **execution_page.context(request, row, now),
            **following(row, now),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/scheduling/schedulerexecution/page.html", context)
