"""Filters of the list of executions by time and by duration. None of them reads the whole table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.db.models import F, QuerySet
from django.http import HttpRequest
from django.utils import timezone as clock
from django.utils.translation import gettext_lazy as _

from scheduling.admin.common.filters import ColumnFilter, WithinFilter
from scheduling.admin.executions.duration import TOOK, newest_of, usual_of, with_took
from scheduling.admin.executions.spans import NIGHT, SINCE, UNTIL, BadSpan, between, night_of, night_words
from scheduling.core.durations import SLOW_SECONDS
from scheduling.core.text import visible_text
from scheduling.models import SchedulerExecution
from scheduling.operations.spans import within


class TimeFilter(WithinFilter):
    """The last hour, day, week or month, or the last night."""

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, Any]]:
        hour, *others = super().lookups(request, model_admin)
        return [hour, (NIGHT, night_words(clock.localtime())), *others]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        return within(queryset, night_of(request)) if self.value() == NIGHT else super().queryset(request, queryset)


class BetweenFilter(admin.SimpleListFilter):
    """From one instant to another, on the viewer's clock. Each of the two may be left out."""

    title, parameter_name = _("dates"), SINCE
    template = "admin/scheduling/filter_between.html"

    def __init__(self, request: HttpRequest, params: Any, model: Any, model_admin: admin.ModelAdmin) -> None:
        super().__init__(request, params, model, model_admin)
        if UNTIL in params:
            self.used_parameters[UNTIL] = params.pop(UNTIL)[-1]

    def expected_parameters(self) -> list[str | None]:
        return [SINCE, UNTIL]

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, Any]]:
        return []

    def has_output(self) -> bool:
        return True

    def chip(self) -> str:
        """The chosen span in words."""
        since, until = (visible_text(self.used_parameters.get(name) or "…", 32) for name in (SINCE, UNTIL))
        return f"{since} - {until}".replace("T", " ")

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """Nothing matches a text that is no date and time."""
        try:
            return within(queryset, between(request))
        except BadSpan:
            return queryset.none()

    def choices(self, changelist: Any) -> Iterator[Any]:
        """What the template needs: the two values, and the other parameters of the URL."""
        own = (SINCE, UNTIL)
        kept = [(name, text) for name, values in changelist.filter_params.items() for text in values if name not in own]
        values = {name: visible_text(self.used_parameters.get(name) or "", 32) for name in own}
        yield {
            "selected": any(values.values()),
            "fields": [(SINCE, _("From"), values[SINCE]), (UNTIL, _("To"), values[UNTIL])],
            "zone": str(clock.get_current_timezone()),
            "kept": kept,
            "without": changelist.get_query_string(remove=list(own)),
        }


class DurationFilter(ColumnFilter):
    """Runs that took or have run for long. Only the newest rows are looked at: see `newest_of`."""

    title, parameter_name = _("duration"), "took"
    qualifier = "duration"
    slow = "slow"
    seconds = {"1m": 60.0, "10m": 600.0, "1h": 3600.0}
    values = (
        (slow, _("slower than usual")),
        ("1m", _("over 1 min")),
        ("10m", _("over 10 min")),
        ("1h", _("over 1 h")),
    )

    most_compared = 2_000
    """At most this many runs are compared with the usual duration: the newest that took longer than `SLOW_SECONDS`."""
    most_schedules = 100
    """At most this many schedules are compared: those with the longest of these runs."""

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        if (value := self.value()) is None:
            return queryset
        if value == self.slow:
            return queryset.filter(pk__in=self._slower(newest_of(queryset, request), request))
        if value not in self.seconds:
            return queryset.none()
        return newest_of(queryset, request).filter(**{f"{TOOK}__gt": self.seconds[value]})

    def _slower(self, rows: QuerySet[SchedulerExecution], request: HttpRequest) -> list[int]:
        """The primary keys of the runs that were slower than usual."""
        found = rows.prefetch_related(None).order_by("-pk").exclude(scheduler=None)
        long = with_took(found).filter(**{f"{TOOK}__gte": SLOW_SECONDS}).annotate(seconds=F(TOOK))
        compared = list(long.values_list("seconds", "scheduler_id", "pk")[: self.most_compared])
        longest = dict.fromkeys(scheduler for _seconds, scheduler, _pk in sorted(compared, reverse=True))
        known = usual_of(list(longest)[: self.most_schedules], request)
        return [pk for seconds, scheduler, pk in compared if scheduler in known and known[scheduler].times(seconds)]
