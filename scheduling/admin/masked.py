"""Parameters for eyes that may not change them: indented, and without secrets."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from scheduling.admin.lookups import NoParamsLookup
from scheduling.admin.params_model import masked
from scheduling.admin.parts import json_block
from scheduling.registry import Handler


class MaskedParams(NoParamsLookup):
    """Where the form is read-only, `params` gives way to `params_shown`.

    Django would show the stored value as it is, with its secrets.
    """

    shown_instead: Any = {"params": "params_shown"}
    """By name of a field, what a read-only page shows for it."""

    def code_of(self, row: Any) -> Handler | None:
        """The code whose params model says what is secret."""
        raise NotImplementedError

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Swap the fields for somebody who may only look."""
        fieldsets = super().get_fieldsets(request, obj)
        if obj is None or self.has_change_permission(request, obj):
            return fieldsets
        return [
            (name, {**options, "fields": tuple(self.shown_instead.get(field, field) for field in options["fields"])})
            for name, options in fieldsets
        ]

    @admin.display(description=_("Parameters"))
    def params_shown(self, row: Any) -> SafeString:
        """As JSON, with secrets hidden."""
        return json_block(masked(self.code_of(row), row.params))
