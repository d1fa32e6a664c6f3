"""The filters of the list of alerts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from scheduling.admin.common.filters import SchedulerFilter, SpanFilter
from scheduling.admin.ui.text import is_number

OPEN, OVER, ALL = "open", "over", "all"


class OpenFilter(admin.SimpleListFilter):
    """Open alerts, those that are over, or all. Without a choice, the list shows the open ones."""

    title, parameter_name = _("state"), "state"
    qualifier = "state"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, Any]]:
        return [
            ("new", _("open, not acknowledged")), ("acknowledged", _("open, acknowledged")), (OVER, _("over")),
            (ALL, _("open and over")),
        ]  # fmt: skip

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Django calls the choice without a value "All"."""
        for number, choice in enumerate(super().choices(changelist)):
            yield {**choice, "display": _("open")} if number == 0 else choice

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        match self.value():
            case "new":
                return queryset.filter(ended_at=None, acknowledged_at=None)
            case "acknowledged":
                return queryset.filter(ended_at=None, acknowledged_at__isnull=False)
            case "over":
                return queryset.filter(ended_at__isnull=False)
            case "all":
                return queryset
            case _:
                return queryset.filter(ended_at=None)


class SinceFilter(SpanFilter):
    """Alerts that have begun within a span."""

    title, parameter_name = _("began"), "age"

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        since = self.since()
        return queryset if since is None else queryset.filter(started_at__gte=since)


class AlertScheduleFilter(SchedulerFilter):
    """Alerts about one schedule."""

    parameter_name = "schedule"

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        value = self.value()
        if value is None:
            return queryset
        return queryset.filter(schedule=value) if is_number(value) else queryset.none()
