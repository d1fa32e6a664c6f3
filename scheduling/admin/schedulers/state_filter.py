"""The filter of the list of schedules by state: active or paused."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from scheduling.admin.common.filters import ColumnFilter


class StateFilter(ColumnFilter):
    """Filters the schedules that are planned, or those that are paused."""

    title, parameter_name = _("active or paused"), "status__exact"
    values = (("1", _("active")), ("0", _("paused")))

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        value = self.value()
        return queryset.filter(status=value == "1") if value in ("0", "1") else queryset
