"""Django's autocomplete widget with a name for screen readers."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.admin.widgets import AutocompleteSelect, AutocompleteSelectMultiple
from django.core.exceptions import ValidationError


class ValidKeys:
    """Looks up only valid primary keys, because Django raises an error for any other text."""

    field: Any

    def optgroups(self, name: str, value: Any, attr: dict[str, Any] | None = None) -> Any:
        valid = [key for key in value if not key or self._is_key(key)]
        return super().optgroups(name, valid, attr)  # type: ignore[misc]  # the widget that this class is mixed into

    def _is_key(self, key: str) -> bool:
        try:
            self.field.target_field.clean(key, None)
        except ValidationError:
            return False
        return True


class AutocompleteMany(ValidKeys, AutocompleteSelectMultiple):
    """A field with autocomplete for several values. Each value has its own button that removes it.

    A button that removes all values would stand inside the list of values. Screen readers could not read this list.
    """

    def build_attrs(self, base_attrs: dict[str, Any], extra_attrs: dict[str, Any] | None = None) -> dict[str, Any]:
        return {**super().build_attrs(base_attrs, extra_attrs), "data-allow-clear": "false"}


class Autocomplete(ValidKeys, AutocompleteSelect):
    """An autocomplete field with a placeholder.

    Screen readers use the text in the field as the field's name, so an empty field needs a placeholder.

    Args:
        empty: the placeholder.
    """

    def __init__(self, field: Any, admin_site: AdminSite, empty: Any, attrs: dict[str, Any] | None = None) -> None:
        self.empty = empty
        super().__init__(field, admin_site, attrs)

    def build_attrs(self, base_attrs: dict[str, Any], extra_attrs: dict[str, Any] | None = None) -> dict[str, Any]:
        return {**super().build_attrs(base_attrs, extra_attrs), "data-placeholder": self.empty}
