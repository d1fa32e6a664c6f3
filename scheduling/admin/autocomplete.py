"""Autocomplete: Django's, with a name for those who hear the page."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.admin.widgets import AutocompleteSelect


class Autocomplete(AutocompleteSelect):
    """Select2 names its box by what that shows, so an empty one needs words to be named by.

    Args:
        empty: those words.
    """

    def __init__(self, field: Any, admin_site: AdminSite, empty: Any, attrs: dict[str, Any] | None = None) -> None:
        self.empty = empty
        super().__init__(field, admin_site, attrs)

    def build_attrs(self, base_attrs: dict[str, Any], extra_attrs: dict[str, Any] | None = None) -> dict[str, Any]:
        """Django's own placeholder is an empty one."""
        return {**super().build_attrs(base_attrs, extra_attrs), "data-placeholder": self.empty}
