"""The pages of Workers and Reports, the targets that name a handler.

A page shows whether the handler is registered, which parameters the handler takes, and the target's default params.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduling.admin.common.safe_text import column
from scheduling.admin.params.json_field import PrettyJSONField
from scheduling.admin.params.model import params_table
from scheduling.admin.params.secret_form import HiddenSecrets
from scheduling.admin.targets.uses import Uses
from scheduling.admin.ui.badges import registered_badge
from scheduling.admin.ui.datalist import DatalistInput
from scheduling.admin.ui.text import first_line
from scheduling.admin.ui.times import time_with_relative
from scheduling.core.text import visible_text
from scheduling.handlers import Handler, handlers
from scheduling.handlers.targets import handler_named
from scheduling.models import Worker
from scheduling.models.target import Target


def type_of(row: Target) -> str:
    """The target type: `worker` or `report`."""
    return str(row._meta.model_name)


class TargetForm(HiddenSecrets):
    """Suggests the names of registered handlers, and checks the parameters against the handler."""

    params = PrettyJSONField(
        label=gettext_lazy("Parameters"),
        help_text=gettext_lazy(
            "The default parameters of all schedules of this target, as a JSON object. They must fit the target's code."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if (name := self.instance.name_field) in self.fields:
            self.fields[name].widget = DatalistInput([handler.name for handler in handlers(type_of(self.instance))])

    def code(self, data: dict[str, Any] | None = None) -> Handler | None:
        """The handler that the posted form or else the row names; None if this handler is not registered."""
        name = (data or {}).get(self.instance.name_field) or self.instance.handler_name
        return handler_named(type_of(self.instance), name)


@admin.register(Worker)
class TargetAdmin(Uses):
    """The pages of one target type. `migrate` creates the rows, and never overwrites the changes of operators."""

    form = TargetForm
    change_list_template = "admin/scheduling/change_list.html"  # a target of another app has the same list
    readonly_fields = ("code_panel", "created")
    no_rows = gettext_lazy("Each row names code that is registered with a decorator. The rows appear after migrate.")

    def __init__(self, model: type[Target], admin_site: admin.AdminSite) -> None:
        self.name_field = name = model.name_field
        self.list_display = (column(model, name), column(model, "title"), "code_chip", "summary")
        # Workers and Reports share this class, so each instance sets its own options. Type stubs do not expect this.
        self.search_fields = (name, "title", "description")  # type: ignore[misc]
        self.fieldsets = (  # type: ignore[misc]
            (None, {"fields": (name, "title", "description", "code_panel", "created")}),
            (gettext_lazy("Defaults"), {"fields": ("params",)}),
        )
        super().__init__(model, admin_site)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """The name is read-only once the row exists, because schedules rely on the name."""
        return self.readonly_fields if obj is None else (self.name_field, *self.readonly_fields)

    def save_model(self, request: HttpRequest, obj: Target, form: Any, change: bool) -> None:
        """Warns if no code has the name: a mistyped name would be noticed only when its runs fail."""
        super().save_model(request, obj, form, change)
        if self.code_of(obj) is None:
            said = _("No code named “%(name)s” is registered here. Its runs fail until such code is deployed.")
            self.message_user(request, said % {"name": visible_text(obj.handler_name, 120)}, messages.WARNING)

    @admin.display(description=gettext_lazy("Code"))
    def code_chip(self, row: Target) -> str:
        return registered_badge(type_of(row), row.handler_name)

    @admin.display(description=gettext_lazy("Description"))
    def summary(self, row: Target) -> str:
        """The first line of the row's description. If the row has none, the first line of the handler's description."""
        handler = self.code_of(row)
        return first_line(row.description or (handler.description if handler else ""), 120)

    @admin.display(description=gettext_lazy("Created"))
    def created(self, row: Target) -> str:
        return time_with_relative(row.created_at)

    @admin.display(description=gettext_lazy("Code"))
    def code_panel(self, row: Target) -> SafeString | str:
        """The handler's description and its parameters."""
        if not row.handler_name:
            field: Any = row._meta.get_field(self.name_field)
            text = _("Fill in “%(field)s” and save. This line then says whether code of this name is registered.")
            return text % {"field": capfirst(field.verbose_name)}
        handler, chip = self.code_of(row), self.code_chip(row)
        if handler is None:
            text = _("Runs are retried and then fail until code of this name is deployed.")
            return format_html('<div class="sch-panel"><p>{}</p><p>{}</p></div>', chip, text)
        return format_html(
            '<div class="sch-panel"><p>{}</p><p class="sch-doc">{}</p>{}</div>',
            chip,
            visible_text(handler.description, 4_000),
            params_table(handler.params),
        )
