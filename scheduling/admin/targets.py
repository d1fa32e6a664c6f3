"""What the pages of target rows share: the code behind a row, and whether its parameters fit it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduling.admin.hidden_secrets import HiddenSecrets
from scheduling.admin.masked import MaskedParams
from scheduling.admin.parts import (
    MEDIA,
    PrettyJSONField,
    first_line,
    params_table,
    registered_chip,
    shown,
)
from scheduling.admin.scheduler_panels import handler_named
from scheduling.admin.trailed import Trailed
from scheduling.registry import Handler


class TargetForm(HiddenSecrets):
    """The name cannot be moved to other code once schedules hang on it; the parameters fit the code.

    A subclass says `type_` and `name_field`.
    """

    type_ = ""
    name_field = "name"

    params = PrettyJSONField(
        label=gettext_lazy("Parameters"),
        help_text=gettext_lazy(
            "Defaults for every schedule of this target, as a JSON object; checked against its code."
        ),
    )

    def code(self, data: dict[str, Any] | None = None) -> Handler | None:
        """By the name, which is read-only once there is a row."""
        return handler_named(self.type_, (data or {}).get(self.name_field) or getattr(self.instance, self.name_field))


class TargetAdmin(Trailed, MaskedParams):
    """A row that names registered code. A subclass says `type_` and `name_field`."""

    type_ = ""
    name_field = "name"

    @property
    def media(self) -> Any:
        """The stock scripts and our style sheet."""
        return super().media + MEDIA

    def code_of(self, row: Any) -> Handler | None:
        """The code of the row's name."""
        return handler_named(self.type_, getattr(row, self.name_field))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """The name is chosen once."""
        fields = [*super().get_readonly_fields(request, obj)]
        return fields if obj is None else [self.name_field, *fields]

    @admin.display(description=gettext_lazy("Code"))
    def code_chip(self, row: Model) -> str:
        """Whether it is registered in this process."""
        return registered_chip(self.type_, getattr(row, self.name_field))

    @admin.display(description=gettext_lazy("Description"))
    def summary(self, row: Any) -> str:
        """The first line of the row's own description, or of the code's."""
        handler = self.code_of(row)
        return first_line(row.description or (handler.description if handler else ""), 120)

    @admin.display(description=gettext_lazy("Code"))
    def code_panel(self, row: Any) -> SafeString | str:
        """What the code says of itself, and the parameters that it takes."""
        name = getattr(row, self.name_field)
        if not name:
            return _("It is shown once there is a name.")
        handler = handler_named(self.type_, name)
        chip = registered_chip(self.type_, name)
        if handler is None:
            text = _("Schedules of it are retried and then fail until code of this name is deployed.")
            return format_html('<div class="sch-panel"><p>{}</p><p>{}</p></div>', chip, text)
        return format_html(
            '<div class="sch-panel"><p>{}</p><p class="sch-doc">{}</p>{}</div>',
            chip,
            shown(handler.description, 4_000),
            params_table(handler.params),
        )
