"""The admin's list of executions, and the page of one execution."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.contrib.admin.widgets import AutocompleteSelect
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone as clock
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from scheduling.admin.common.filters import ChoiceFilter, SchedulerFilter
from scheduling.admin.common.read_only import ReadOnly
from scheduling.admin.executions import page as execution_page
from scheduling.admin.executions.cancel import ExecutionActions
from scheduling.admin.executions.columns import ExecutionColumns
from scheduling.admin.executions.duration import limit_words, with_took
from scheduling.admin.executions.filters import BetweenFilter, DurationFilter, TimeFilter
from scheduling.admin.executions.output_views import PAGE_MEDIA, ExecutionOutput, following
from scheduling.admin.executions.search import SCHEDULER, ExecutionList, newest, search
from scheduling.admin.ui.paginators import CappedPaginator
from scheduling.admin.ui.text import searched
from scheduling.models import SchedulerExecution


@admin.register(SchedulerExecution)
class ExecutionAdmin(ExecutionColumns, ExecutionOutput, ExecutionActions, ReadOnly):
    """The list stays fast with millions of rows, because it has no join, no date hierarchy, and a limited count."""

    list_filter = (
        ("state", ChoiceFilter), TimeFilter, BetweenFilter, ("type", ChoiceFilter), ("trigger", ChoiceFilter),
        SchedulerFilter, DurationFilter,
    )  # fmt: skip
    """`DurationFilter` is the last one, because it looks at the rows that the others leave."""
    list_select_related = ()
    search_fields = ("=id", "^execution_key", "^target_name", "=fingerprint")
    search_limit = 100_000
    """A search reads only the newest executions, at most this many. A search by id or within one schedule has no limit.

    Except for the id, the searched columns have no index of their own, because an index would slow down every claim.
    """
    search_help_text = gettext_lazy(
        "An id, the beginning of an execution key or of a target's name, or an error group. All but an id is looked "
        "for among the newest 100,000 executions; choose a schedule among the filters to look through all of its own."
    )
    paginator = CappedPaginator

    @property
    def media(self) -> Any:
        field = SchedulerExecution._meta.get_field("scheduler")
        return super().media + AutocompleteSelect(field, self.admin_site).media

    def get_queryset(self, request: HttpRequest) -> QuerySet[SchedulerExecution]:
        """Fetches schedules in a separate query, because MariaDB would sort all executions for a join."""
        return with_took(super().get_queryset(request)).prefetch_related("scheduler", *SCHEDULER)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return ExecutionList

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Says if a filter or an order has looked at the newest rows only."""
        response = super().changelist_view(request, extra_context)
        if said := limit_words(request):
            self.message_user(request, said, messages.INFO)
        return response

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[SchedulerExecution], search_term: str
    ) -> tuple[QuerySet[SchedulerExecution], bool]:
        term = searched(search_term)
        if not term:
            return queryset, False
        bounded = term.isdecimal() or SchedulerFilter.parameter_name in request.GET
        return search(queryset if bounded else newest(queryset, self.search_limit), term), False

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
            "title": _("Execution %(id)s") % {"id": row.pk},
            "original": row,
            "preserved_filters": self.get_preserved_filters(request),
            **execution_page.context(request, row, now),
            **following(row, now),
            **extra_context,
        }
        return self.page_response(request, "admin/scheduling/schedulerexecution/page.html", **context)
