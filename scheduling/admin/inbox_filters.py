"""Filters of the failed inbox, which may be a hundred thousand rows beside a history of a million."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone as clock
from django.utils.translation import gettext_lazy as _

from scheduling.admin.filters import SPANS
from scheduling.admin.text import shown


class CommonValueFilter(admin.SimpleListFilter):
    """A column's most frequent values, with counts, among the newest rows of the inbox: whatever its size, it is
    one bounded query for all such filters of a page. A value that is not offered can be searched for."""

    most = 25
    newest = 10_000
    columns = ("target_name", "error_class")

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, str]]:
        """The values; a count that may go on beyond the newest rows has a plus."""
        rows = self._rows(request, model_admin)
        place = self.columns.index(str(self.parameter_name))
        counts = Counter(row[place] for row in rows if row[place])
        plus = "+" if len(rows) == self.newest else ""
        common = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
        return [(value, f"{shown(value, 60)} ({count}{plus})") for value, count in common[: self.most]]

    def _rows(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] | None = getattr(request, "_newest_of_inbox", None)
        if found is None:
            rows = model_admin.get_queryset(request).prefetch_related(None).order_by("-pk")
            found = list(rows.values_list(*self.columns)[: self.newest])
            request._newest_of_inbox = found  # type: ignore[attr-defined]
        return found

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """Rows with the value."""
        value = self.value()
        return queryset if value is None else queryset.filter(**{str(self.parameter_name): value})


class TargetFilter(CommonValueFilter):
    """By the target's name."""

    title, parameter_name = _("target"), "target_name"


class ErrorClassFilter(CommonValueFilter):
    """By the error's class."""

    title, parameter_name = _("error class"), "error_class"


class FingerprintFilter(admin.SimpleListFilter):
    """By error group. It is shown only while it is used: the page of groups is the way to choose one."""

    title, parameter_name = _("error group"), "fingerprint"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, Any]]:
        """The chosen one, by its beginning."""
        value = self.value()
        return [] if value is None else [(value, shown(value, 12) or _("without a group"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """Rows of the group."""
        value = self.value()
        return queryset if value is None else queryset.filter(fingerprint=value)


class GroupedFilter(admin.SimpleListFilter):
    """Makes the address of the grouped page known to the list; it filters nothing and is never shown."""

    title, parameter_name = _("view"), "group"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, Any]]:
        """None: a link above the list switches."""
        return []

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """All of them."""
        return queryset


class AgeFilter(admin.SimpleListFilter):
    """By how long ago it failed."""

    title, parameter_name = _("age"), "age"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, Any]]:
        """Younger than a span, or older than the longest."""
        return [*((key, word) for key, word, _span in SPANS), ("old", _("older than 30 days"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """Rows that failed then."""
        now = clock.now()
        if self.value() == "old":
            return queryset.filter(finished_at__lt=now - SPANS[-1][2])
        span = next((span for key, _word, span in SPANS if key == self.value()), None)
        return queryset if span is None else queryset.filter(finished_at__gte=now - span)
