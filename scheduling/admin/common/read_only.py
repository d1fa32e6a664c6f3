"""The base class of read-only pages, for rows that operators do not edit."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from scheduling.admin.common.base import SafePages


class ReadOnly(SafePages):
    """Forbids adding, changing and deleting rows, whatever permissions a user has. Lists show the newest rows first."""

    actions: Any = ()
    ordering = ("-id",)
    list_per_page = 50
    # In a table with millions of rows, the facets and the total count beside a filtered list would be slow.
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    has_delete_permission = has_change_permission
