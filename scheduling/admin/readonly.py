"""Pages of history: looked at by those who may view, changed by nobody."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.text import capfirst

from scheduling.admin.edit_history import EditHistory
from scheduling.admin.legible import Legible
from scheduling.admin.lookups import NoParamsLookup


class ReadOnly(EditHistory, Legible, NoParamsLookup):
    """No adding, changing or deleting, whatever permissions a user has."""

    actions: Any = ()

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """There is nothing to select here: the list is called by its name."""
        return super().changelist_view(
            request, {"title": capfirst(self.opts.verbose_name_plural), **(extra_context or {})}
        )

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Never: rows are written by what they record."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never: retention deletes (`cleanup_executions`)."""
        return False
