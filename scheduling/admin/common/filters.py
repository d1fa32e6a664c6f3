"""Filters of the admin's lists. No filter loads all its values from the database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone as clock
from django.utils.translation import gettext_lazy as _

from scheduling.admin.ui.autocomplete import Autocomplete
from scheduling.admin.ui.text import is_number
from scheduling.core.targets import TARGETS
from scheduling.core.text import visible_text
from scheduling.models.first_keys import first_keys
from scheduling.models.labels import TYPES
from scheduling.models.visibility import visibility_of


class ChoiceFilter(admin.ChoicesFieldListFilter):
    """Django's filter for choices, but with a short URL: `?state=failed` instead of `?state__exact=failed`."""

    def __init__(
        self, field: Any, request: HttpRequest, params: Any, model: Any, model_admin: Any, field_path: str
    ) -> None:
        super().__init__(field, request, params, model, model_admin, field_path)
        self.lookup_kwarg, self.lookup_val = field_path, params.pop(field_path, None)
        if self.lookup_val is not None:
            self.used_parameters[field_path] = self.lookup_val


class ColumnFilter(admin.SimpleListFilter):
    """Filters by one column. A subclass lists the values with their labels in `values`, or overrides `lookups`."""

    values: Sequence[tuple[str, Any]] = ()

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, Any]]:
        return list(self.values)

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        value = self.value()
        return queryset if value is None else queryset.filter(**{str(self.parameter_name): value})


class SpanFilter(admin.SimpleListFilter):
    """The base of filters by time: the last hour, day, week or month."""

    qualifier = "age"
    """The name of the filter in a search, such as `age:24h`. A filter with `values` has its parameter's name if it has
    no other. Another filter without this attribute has no such name."""

    spans = {
        "1h": (_("last hour"), timedelta(hours=1)),
        "24h": (_("last 24 hours"), timedelta(hours=24)),
        "7d": (_("last 7 days"), timedelta(days=7)),
        "30d": (_("last 30 days"), timedelta(days=30)),
    }

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, Any]]:
        return [(key, word) for key, (word, _span) in self.spans.items()]

    def since(self) -> datetime | None:
        """The beginning of the chosen span; None if no span is chosen."""
        _word, span = self.spans.get(self.value() or "", ("", None))
        return clock.now() - span if span is not None else None


class WithinFilter(SpanFilter):
    title, parameter_name = _("time"), "within"

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """The executions that fell due within the span.

        An execution is never claimed before it is due. So a row that was claimed before the span also fell due before
        the span. The query first leaves out such rows by their primary keys, because a comparison of keys is fast.
        """
        since = self.since()
        if since is None:
            return queryset
        return queryset.filter(pk__gte=first_keys([since])[0], scheduled_at__gte=since)


class SchedulerFilter(admin.SimpleListFilter):
    """Filters by one schedule. Users choose the schedule with autocomplete.

    Users who may not view schedules type the schedule's number instead.
    """

    title, parameter_name = _("schedule"), "scheduler"
    template = "admin/scheduling/filter_scheduler.html"

    def __init__(self, request: HttpRequest, params: Any, model: Any, model_admin: admin.ModelAdmin) -> None:
        super().__init__(request, params, model, model_admin)
        self._may_search = request.user.has_perm("scheduling.view_scheduler")
        self._schedules = visibility_of(request.user).schedules().prefetch_related(*TARGETS)

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, Any]]:
        """Offers no values, because a list of all schedules could have a million entries."""
        return []

    def has_output(self) -> bool:
        return True

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        value = self.value()
        if value is None:
            return queryset
        return queryset.filter(scheduler=value) if is_number(value) else queryset.none()

    def chip(self) -> str:
        """The name of the chosen schedule. Users who may not view schedules see its number."""
        value = str(self.value())
        if not self._may_search or not is_number(value):
            return visible_text(value, 40)
        found = self._schedules.filter(pk=value).first()
        return visible_text(found or value, 40)

    def choices(self, changelist: Any) -> Iterator[Any]:
        """What the template needs: the form field, and the other parameters of the URL."""
        value, name = self.value(), str(self.parameter_name)
        kept = [(key, text) for key, values in changelist.filter_params.items() for text in values if key != name]
        yield {
            "field": self._field(changelist, value if value is not None and is_number(value) else None),
            "kept": kept,
        }

    def _field(self, changelist: Any, value: str | None) -> Any:
        relation, site = changelist.model._meta.get_field(str(self.parameter_name)), changelist.model_admin.admin_site
        attributes = {"aria-label": _("Schedule")}
        widget: forms.Widget = forms.NumberInput(attributes)
        if self._may_search:
            widget = Autocomplete(relation, site, _("Any schedule"), attributes)
        field = forms.ModelChoiceField(self._schedules, required=False, widget=widget)
        form = forms.Form(initial={self.parameter_name: value}, auto_id="filter_%s")
        form.fields[str(self.parameter_name)] = field
        return form[str(self.parameter_name)]


class GroupFilter(admin.RelatedFieldListFilter):
    """Filters by group. It offers only the groups whose rows the user sees."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[Any]:
        visible = visibility_of(request.user)
        found: list[Any] = list(super().field_choices(field, request, model_admin))
        return [(key, visible_text(name, 60)) for key, name in found if visible.shows_group(key)]


class SchedulerTypeFilter(ColumnFilter):
    """Filters schedules by the type of their target."""

    title, parameter_name = _("target type"), "type"
    values = tuple(TYPES.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        value = self.value()
        if value is None:
            return queryset
        return queryset.filter(**{f"{value}__isnull": False}) if value in TARGETS else queryset.none()
