"""A text input with suggestions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString


class DatalistInput(forms.TextInput):
    """A text input that suggests values. The user may also type a value that is not suggested."""

    def __init__(self, options: Iterable[str], attrs: dict[str, Any] | None = None) -> None:
        super().__init__({"autocomplete": "off", "spellcheck": "false", **(attrs or {})})
        self.options = options

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        list_id = f"{(attrs or {}).get('id') or name}_list"
        field = super().render(name, value, {**(attrs or {}), "list": list_id}, renderer)
        options = format_html_join("", '<option value="{}"></option>', ((option,) for option in sorted(self.options)))
        return format_html('{}<datalist id="{}">{}</datalist>', field, list_id, options)
