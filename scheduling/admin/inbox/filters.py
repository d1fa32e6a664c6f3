"""Filters of the failed inbox. They stay fast with 100,000 failures in a table of millions of executions."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone as clock
from django.utils.translation import gettext_lazy as _

from scheduling.admin.common.filters import ColumnFilter, SpanFilter
from scheduling.admin.inbox import view
from scheduling.core.text import visible_text
from scheduling.models.newest import newest_values
from scheduling.models.visibility import visibility_of


class CommonValueFilter(ColumnFilter):
    """Offers the most frequent values of a column, with their counts. Only the newest rows of the inbox are counted.

    All filters of this class on one page share one bounded query. To find rows with other values, users use the search.
    """

    most = 25
    newest = 10_000
    columns = ("target_name", "error_class")

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, str]]:
        """The values with their counts. A plus means that the inbox may have more rows than were counted."""
        rows = self._rows(request, model_admin)
        place = self.columns.index(str(self.parameter_name))
        counts = Counter(row[place] for row in rows if row[place])
        plus = "+" if len(rows) == self.newest else ""
        common = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        return [(value, f"{visible_text(value, 60)} ({count}{plus})") for value, count in common[: self.most]]

    def has_output(self) -> bool:
        """A chosen value is shown even if no row of the inbox has it, so that users can remove it."""
        return self.value() is not None or super().has_output()

    def chip(self) -> str:
        """The chosen value, without the number of its rows."""
        return visible_text(self.value(), 60)

    def _rows(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] | None = getattr(request, "_newest_of_inbox", None)
        if found is None:
            rows = model_admin.get_queryset(request).prefetch_related(None)
            found = newest_values(rows, visibility_of(request.user), self.columns, self.newest)
            request._newest_of_inbox = found  # type: ignore[attr-defined]
        return found


class TargetFilter(CommonValueFilter):
    title, parameter_name = _("target"), "target_name"


class ErrorClassFilter(CommonValueFilter):
    title, parameter_name = _("error class"), "error_class"


class FingerprintFilter(ColumnFilter):
    """Filters by error group. The filter is shown only while a group is chosen, and offers only this group.

    Operators choose a group on the inbox page that lists the error groups.
    """

    title, parameter_name = _("error group"), "fingerprint"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, Any]]:
        value = self.value()
        return [] if value is None else [(value, visible_text(value, 12) or _("without a group"))]


class GroupedFilter(ColumnFilter):
    """Makes Django accept the parameter `group` in the list's URL. The filter keeps all rows and is never shown."""

    title, parameter_name = _("view"), view.PARAMETER

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        return queryset


class AgeFilter(SpanFilter):
    """Filters by how long ago an execution failed."""

    title, parameter_name = _("age"), "age"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, Any]]:
        return [*super().lookups(request, model_admin), ("old", _("older than 30 days"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        if self.value() == "old":
            return queryset.filter(finished_at__lt=clock.now() - self.spans["30d"][1])
        since = self.since()
        return queryset if since is None else queryset.filter(finished_at__gte=since)
