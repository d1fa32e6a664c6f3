"""Trailed: the pages of rows that people write leave entries that say what stood there before, and what does now."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.models import DELETION, LogEntry
from django.db import models
from django.http import HttpRequest

from scheduling.admin.edit_history import EditHistory
from scheduling.admin.legible import Legible
from scheduling.admin.trail import edits, removed
from scheduling.registry import Handler


class Trailed(EditHistory, Legible):
    """Old and new values in each entry instead of names of fields, and a history that shows them as tables."""

    def code_of(self, row: Any) -> Handler | None:
        """The code whose params model says what is secret."""
        return None

    def construct_change_message(self, request: HttpRequest, form: Any, formsets: Any, add: bool = False) -> Any:
        """What a form added or changed."""
        found = edits(
            form,
            self.code_of(form.instance),
            getattr(form, "former", None),
            getattr(form, "former_code", None),
        )
        return found or "Nothing was changed."

    def log_deletions(self, request: HttpRequest, queryset: models.QuerySet) -> Any:
        """What was in the rows, for nothing else will tell: also by the list's action."""
        assert request.user.pk is not None  # noqa: S101 - these pages are for users
        for row in queryset:
            message = removed(row, self.code_of(row))
            LogEntry.objects.log_actions(request.user.pk, [row], DELETION, message)
