"""The admin's list of executions, and the page of one execution."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.contrib.admin.widgets import AutocompleteSelect
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone as clock
from django.utils.decorators import method_decorator
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from scheduling.admin.common.filter_bar import ListView
from scheduling.admin.common.filters import ChoiceFilter, SchedulerFilter
from scheduling.admin.common.keys import Keys
from scheduling.admin.common.read_only import ReadOnly
from scheduling.admin.common.run_search import QUERY, RunSearch
from scheduling.admin.executions import page as execution_page
from scheduling.admin.executions.cancel import ExecutionActions
from scheduling.admin.executions.columns import ExecutionColumns
from scheduling.admin.executions.duration import limit_words, with_took
from scheduling.admin.executions.filters import BetweenFilter, DurationFilter, TimeFilter
from scheduling.admin.executions.live_chip import LiveChip
from scheduling.admin.executions.output_views import PAGE_MEDIA, ExecutionOutput, following
from scheduling.admin.executions.retention import RetentionPage
from scheduling.admin.executions.search import ExecutionList
from scheduling.admin.executions.spans import NIGHT
from scheduling.admin.ui.execution_names import execution_title
from scheduling.admin.ui.paginators import CappedPaginator
from scheduling.admin.ui.parted_pages import CappedInParts, parted
from scheduling.core.lifecycle import State
from scheduling.models import SchedulerExecution
from scheduling.models.first_keys import oldest_of_newest
from scheduling.models.visibility import visibility_of

BOUNDED = (QUERY, DurationFilter.parameter_name)
"""The parameters of a list that reads a limited number of the newest rows, whatever the user sees of them."""


@admin.register(SchedulerExecution)
class ExecutionAdmin(
    ExecutionColumns, ExecutionOutput, ExecutionActions, LiveChip, RetentionPage, RunSearch, Keys, ReadOnly
):
    """The list stays fast with millions of rows, because it has no join, no date hierarchy, and a limited count."""

    list_views = (
        ListView(gettext_lazy("All"), {}),
        ListView(gettext_lazy("Running"), {"state": State.RUNNING.value}),
        ListView(gettext_lazy("Slow last night"), {"within": NIGHT, "took": DurationFilter.slow}),
    )
    list_filter = (
        ("state", ChoiceFilter), TimeFilter, BetweenFilter, ("type", ChoiceFilter), ("trigger", ChoiceFilter),
        SchedulerFilter, DurationFilter,
    )  # fmt: skip
    """`DurationFilter` is the last one, because it looks at the rows that the others leave."""
    list_select_related = ()
    search_fields = ("id",)  # Django shows a search box only if there are some; `RunSearch` does the search
    search_limit = 100_000
    """A search reads only the newest executions, at most this many. A search by id or within one schedule has no limit.

    Except for the id, the searched columns have no index of their own, because an index would slow down every claim.
    """
    search_help_text = gettext_lazy("Search error, target, schedule, id")
    paginator = CappedPaginator
    no_rows = gettext_lazy("An execution is one run of a schedule. The first one appears when a schedule is due.")

    @property
    def media(self) -> Any:
        field = SchedulerExecution._meta.get_field("scheduler")
        return super().media + AutocompleteSelect(field, self.admin_site).media

    def get_queryset(self, request: HttpRequest) -> QuerySet[SchedulerExecution]:
        """Fetches schedules in a separate query, because MariaDB would sort all executions for a join."""
        visible = visibility_of(request.user)
        return visible.with_schedules(with_took(visible.only(super().get_queryset(request))))

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return ExecutionList

    def get_paginator(self, request: HttpRequest, *args: Any, **options: Any) -> Paginator:
        whole, any_state = super().get_paginator(request, *args, **options), "state" not in request.GET
        if any(name in request.GET for name in BOUNDED):
            return whole
        return parted(whole, CappedInParts, visibility_of(request.user), any_state, whole.per_page)

    def bounded(self, request: HttpRequest, queryset: QuerySet) -> tuple[Q, str]:
        """The newest rows of the table. All rows of one schedule may be read, because an index has them."""
        if SchedulerFilter.parameter_name in request.GET:
            return Q(), ""
        oldest = oldest_of_newest(self.search_limit)
        if oldest is None:
            return Q(), ""
        said = _("Only the newest %(count)s executions were searched. Choose a schedule to search all of its own.")
        return Q(pk__gte=oldest), said % {"count": number_format(self.search_limit, force_grouping=True)}

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Says if a filter or an order has looked at the newest rows only."""
        response = self.with_filters(request) or super().changelist_view(request, extra_context)
        if said := limit_words(request):
            self.message_user(request, said, messages.INFO)
        return response

    @method_decorator(require_safe)
    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The execution's page, read-only."""
        return self.with_row(request, object_id, self._page, extra_context or {})

    def _page(self, request: HttpRequest, row: SchedulerExecution, extra_context: dict[str, Any]) -> HttpResponse:
        now = clock.now()
        context = {
            "media": PAGE_MEDIA,
            "title": execution_title(row, now),
            "original": row,
            "preserved_filters": self.get_preserved_filters(request),
            **execution_page.context(request, row, now),
            **following(row, now),
            **extra_context,
        }
        return self.page_response(request, "admin/scheduling/schedulerexecution/page.html", **context)
