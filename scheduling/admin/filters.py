"""Filters that ask the database nothing to be shown, and as little as can be to be used."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone as clock
from django.utils.translation import gettext_lazy as _

from scheduling.admin.autocomplete import Autocomplete
from scheduling.admin.chips import STATES
from scheduling.admin.paging import first_since
from scheduling.core.lifecycle import Trigger
from scheduling.models import Scheduler
from scheduling.models.scheduler import TARGETS

TYPES = (("worker", _("worker")), ("report", _("report")), ("reminder", _("reminder")))

TRIGGERS = (
    (Trigger.CRON.value, _("cron")),
    (Trigger.DATE.value, _("date")),
    (Trigger.MANUAL.value, _("by hand")),
    (Trigger.MESSAGE.value, _("message")),
)

SPANS = (
    ("1h", _("last hour"), timedelta(hours=1)),
    ("24h", _("last 24 hours"), timedelta(hours=24)),
    ("7d", _("last 7 days"), timedelta(days=7)),
    ("30d", _("last 30 days"), timedelta(days=30)),
)


class ColumnFilter(admin.SimpleListFilter):
    """A column with a few values that are known beforehand: nothing is counted, no value is looked for."""

    values: tuple[tuple[str, Any], ...] = ()

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, Any]]:
        """The known values."""
        return list(self.values)

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """Rows with the value; one that is not known matches nothing."""
        value = self.value()
        return queryset if value is None else queryset.filter(**{str(self.parameter_name): value})


class StateFilter(ColumnFilter):
    """By state."""

    title, parameter_name = _("state"), "state"
    values = tuple((state.value, word) for state, (word, _icon, _tone) in STATES.items())


class TypeFilter(ColumnFilter):
    """By the kind of target."""

    title, parameter_name = _("type"), "type"
    values = TYPES


class TriggerFilter(ColumnFilter):
    """By what asked for it."""

    title, parameter_name = _("trigger"), "trigger"
    values = TRIGGERS


class WithinFilter(admin.SimpleListFilter):
    """Scheduled in the last hour, day, week or month."""

    title, parameter_name = _("time"), "within"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, Any]]:
        """The spans."""
        return [(key, word) for key, word, _span in SPANS]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """Rows of the span. An execution is claimed when it is due or later, so older keys need no look."""
        span = next((span for key, _word, span in SPANS if key == self.value()), None)
        if span is None:
            return queryset
        since = clock.now() - span
        return queryset.filter(pk__gte=first_since(since), scheduled_at__gte=since)


class SchedulerFilter(admin.SimpleListFilter):
    """By one schedule, found by typing a part of its description; by its number for those who may not see schedules."""

    title, parameter_name = _("schedule"), "scheduler"
    template = "admin/scheduling/filter_scheduler.html"

    def __init__(self, request: HttpRequest, params: Any, model: Any, model_admin: admin.ModelAdmin) -> None:
        super().__init__(request, params, model, model_admin)
        self._may_search = request.user.has_perm("scheduling.view_scheduler")

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, Any]]:
        """None: a list of all schedules could be a million long."""
        return []

    def has_output(self) -> bool:
        """It is always shown."""
        return True

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """Rows of the schedule; a value that is no key matches nothing."""
        value = self.value()
        if value is None:
            return queryset
        return queryset.filter(scheduler=value) if _is_key(value) else queryset.none()

    def choices(self, changelist: Any) -> Iterator[Any]:
        """What the template needs: the field, and the form's other parameters."""
        value, name = self.value(), str(self.parameter_name)
        kept = [(key, each) for key, values in changelist.filter_params.items() for each in values if key != name]
        yield {
            "selected": value is not None,
            "field": self._field(changelist, value if value is not None and _is_key(value) else None),
            "kept": kept,
            "without": changelist.get_query_string(remove=[name]),
        }

    def _field(self, changelist: Any, value: str | None) -> Any:
        relation, site = changelist.model._meta.get_field("scheduler"), changelist.model_admin.admin_site
        attributes = {"aria-label": _("Schedule")}
        widget = (
            Autocomplete(relation, site, _("Any schedule"), attributes)
            if self._may_search
            else forms.NumberInput(attributes)
        )
        field = forms.ModelChoiceField(Scheduler.objects.prefetch_related(*TARGETS), required=False, widget=widget)
        form = forms.Form(initial={self.parameter_name: value}, auto_id="filter_%s")
        form.fields[str(self.parameter_name)] = field
        return form[str(self.parameter_name)]


class SchedulerTypeFilter(admin.SimpleListFilter):
    """Schedules by the kind of their target."""

    title, parameter_name = _("target type"), "type"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, Any]]:
        """The three kinds."""
        return list(TYPES)

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """Schedules with such a target."""
        value = self.value()
        if value is None:
            return queryset
        return queryset.filter(Q(**{f"{value}__isnull": False})) if value in TARGETS else queryset.none()


def _is_key(value: str) -> bool:
    return value.isascii() and value.isdecimal() and len(value) < 19
