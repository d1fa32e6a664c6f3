"""The page of a report: what it is, whether its code is here, and its default params."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from reports.models import Report
from scheduling.admin.hidden_secrets import HiddenSecrets
from scheduling.admin.legible import column
from scheduling.admin.masked import MaskedParams
from scheduling.admin.parts import (
    EMPTY,
    MEDIA,
    PrettyJSONField,
    first_line,
    params_table,
    registered_chip,
    when,
)
from scheduling.admin.trailed import Trailed
from scheduling.registry import Handler, UnknownHandler, find


def handler_of(controller: str) -> Handler | None:
    """The code behind a row, if this process has it."""
    try:
        return find("report", controller)
    except UnknownHandler:
        return None


class ReportForm(HiddenSecrets):
    """Defaults must fit the controller's params model, as far as they go."""

    params = PrettyJSONField(label=_("Parameters"), help_text=_("Defaults for every schedule of this report."))

    class Meta:
        model = Report
        fields = ("controller", "title", "description", "params")

    def code(self, data: dict[str, Any] | None = None) -> Handler | None:
        """The controller, which is read-only once there is a row."""
        return handler_of((data or {}).get("controller") or self.instance.controller)


@admin.register(Report)
class ReportAdmin(Trailed, MaskedParams):
    """Rows come by themselves after `migrate`; here they get titles and defaults."""

    form = ReportForm
    list_display = ("__str__", column(Report, "controller"), "registered", "about")
    search_fields = ("controller", "title")
    fields = ("controller", "registered", "title", "description", "params", "accepted", "created")
    readonly_fields = ("registered", "accepted", "created")
    save_on_top = False

    @property
    def media(self) -> forms.Media:
        """The shared style sheet, beside the admin's own."""
        return super().media + MEDIA

    def get_readonly_fields(self, request: HttpRequest, obj: Report | None = None) -> Any:
        """Another controller would be another report: schedules and their history point at this one."""
        return self.readonly_fields if obj is None else ("controller", *self.readonly_fields)

    def code_of(self, row: Report) -> Handler | None:
        """The controller."""
        return handler_of(row.controller)

    @admin.display(description=_("code"))
    def registered(self, report: Report) -> SafeString | str:
        """Whether the controller is registered in this process."""
        return registered_chip("report", report.controller) if report.controller else EMPTY

    @admin.display(description=_("description"))
    def about(self, report: Report) -> str:
        """The description's first line."""
        return first_line(report.description, 120) or EMPTY

    @admin.display(description=_("accepted parameters"))
    def accepted(self, report: Report) -> SafeString | str:
        """The fields of the params model."""
        handler = handler_of(report.controller)
        return params_table(handler.params) if handler is not None else EMPTY

    @admin.display(description=_("created"))
    def created(self, report: Report) -> str:
        """When the row was made."""
        return when(report.created_at)
