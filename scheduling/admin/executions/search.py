"""Bounds the search of executions, and loads the rows of the list. Both are fast even with millions of rows."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone as clock

from scheduling.admin.executions.duration import newest_of, note_durations
from scheduling.core.targets import TARGETS
from scheduling.models import Artefact

SCHEDULER = [f"scheduler__{target}" for target in TARGETS]


class ExecutionList(ChangeList):
    """The list of executions. It does not load large columns, and all rows show their age at the same instant."""

    deferred: tuple[str, ...] = ("params", "error_message", "reason")
    """The list does not show these large columns, so it does not load them."""
    durations = True
    """Whether the list shows how long its runs took, and how many files they made."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet:
        found = super().get_queryset(request, exclude_parameters).defer(*self.deferred)
        return newest_of(found, request) if self._ordered() else found

    def _ordered(self) -> bool:
        """Whether the URL asks for another order than that of the ids.

        No index has such an order, so only the newest rows are ordered. The URL may name columns that do not exist.
        """
        columns = [column for place in self.get_ordering_field_columns() for column in self.list_display[place:][:1]]
        return any(column not in ("id", "failed_at") for column in columns)

    def get_results(self, request: HttpRequest) -> None:
        """Sets the same `looked_at` on all rows, so that an operator can compare the ages of the rows."""
        super().get_results(request)
        now = clock.now()
        few: list[int] | None = getattr(self.paginator, "few", None)
        self.result_list = list(self.result_list if few is None else self.queryset.filter(pk__in=few))
        for row in self.result_list:
            row.looked_at = now
        if self.durations:
            note_durations(self.result_list, now, request)
            files = Artefact.objects.of(row.pk for row in self.result_list).per_execution()
            for row in self.result_list:
                row.files = files.get(row.pk, 0)
