"""The selection of an action in words, for the audit entry."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import HttpRequest

from scheduling.admin.inbox.answer import Answer
from scheduling.core.history_sentences import ALL_FAILURES, CHOSEN, FAILURES_WITH
from scheduling.core.text import visible_text
from scheduling.models import FailedExecution

VIEW_PARAMETERS = ("p", "o", "all", "group", "e")
"""These parameters of the list's URL decide how the list is shown, not which rows the list contains."""


def selection_words(request: HttpRequest, queryset: QuerySet[FailedExecution], asked: Answer) -> str:
    """Return the selection in English words. Fields have their database names, as in all audit entries."""
    if not asked.across:
        return CHOSEN.format()
    chosen = {name: str(value) for name, value in request.GET.items() if name not in VIEW_PARAMETERS and value}
    if not chosen:
        return ALL_FAILURES.format()
    said = ", ".join(_one_in_words(queryset, name, value) for name, value in chosen.items())
    return visible_text(FAILURES_WITH.format(filters=said), 400)


def _one_in_words(queryset: QuerySet[FailedExecution], name: str, value: str) -> str:
    if name != "fingerprint":
        return f"{name}={value}"
    row = queryset.prefetch_related(None).filter(fingerprint=value).only("error_class").first()
    group = f"error group {value[:12]}"
    return f"{row.error_class} ({group})" if row is not None and row.error_class else group
