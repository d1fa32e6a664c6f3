"""The base class of pages on which users edit rows. It writes audit entries, and masks secrets on read-only pages."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.models import DELETION, LogEntry
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy

from scheduling.admin.common.base import SafePages
from scheduling.admin.params.json_field import params_block
from scheduling.handlers import Handler
from scheduling.handlers.permission import refusal
from scheduling.handlers.secret_params import masked
from scheduling.handlers.targets import handler_behind
from scheduling.models.entry_group import group_of
from scheduling.operations.audit import deletion_edits, form_edits, message
from scheduling.operations.params_diff import Change


class Audited(SafePages):
    """Writes audit entries with old and new values. Django itself would write only the names of the changed fields.

    A read-only page shows `params_shown` instead of `params`, because Django would show the stored secrets.
    """

    shown_instead: Any = {"params": "params_shown"}
    """Maps the name of a field to the name of the field that a read-only page shows instead."""

    def code_of(self, row: Any) -> Handler | None:
        """The handler whose params model says which parameters are secret; None if the handler is not registered.

        This implementation is for targets. `SchedulerAdmin` overrides it.
        """
        return handler_behind(str(row._meta.model_name), row)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A row whose code asks for a permission is read-only for users who lack it. Its page says why."""
        return super().has_change_permission(request, obj) and (obj is None or not refusal(request.user, obj))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and (obj is None or not refusal(request.user, obj))

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Adds the sentence that says why the row is read-only."""
        if (row := context.get("original")) is not None:
            context["refusal"] = refusal(request.user, row)
        return super().render_change_form(request, context, *args, **kwargs)

    no_params: Any = gettext_lazy("No parameters are given. The code uses its defaults.")
    """What the page says if the row has no parameters."""

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        if obj is None or self.has_change_permission(request, obj):
            return fieldsets
        return [
            (name, {**options, "fields": tuple(self.shown_instead.get(field, field) for field in options["fields"])})
            for name, options in fieldsets
        ]

    @admin.display(description=gettext_lazy("Parameters"))
    def params_shown(self, row: Any) -> SafeString:
        return params_block(masked(self.code_of(row), row.params), self.no_params)

    def edits_of(self, form: Any) -> list[Change]:
        """The fields that the form changed, with the database names of their columns."""
        return form_edits(form, self.code_of(form.instance))

    def construct_change_message(self, request: HttpRequest, form: Any, formsets: Any, add: bool = False) -> Any:
        edits = self.edits_of(form)
        return message("" if edits else "Nothing was changed.", edits, group_of(form.instance))

    def log_deletions(self, request: HttpRequest, queryset: models.QuerySet) -> Any:
        """Writes the values of the deleted rows into the audit entries, because no other record keeps these values."""
        assert request.user.pk is not None  # noqa: S101 - only logged-in users reach these pages
        for row in queryset:
            said = message("", deletion_edits(row, self.code_of(row)), group_of(row))
            LogEntry.objects.log_actions(request.user.pk, [row], DELETION, said)
