"""The filter of the list of schedules by health."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from scheduling.admin.common.filters import ColumnFilter
from scheduling.core.health import Health
from scheduling.models.health import RANK
from scheduling.models.labels import HEALTH


class HealthFilter(ColumnFilter):
    """Filters rows of `models.health.with_health`."""

    title, parameter_name = _("health"), "health"
    values = tuple(HEALTH.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        value = self.value()
        if value is None:
            return queryset
        return queryset.filter(**{RANK: list(Health).index(Health(value))}) if value in HEALTH else queryset.none()
