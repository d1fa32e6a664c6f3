"""The pages of Reminders. A Reminder is a message that a schedule sends."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from scheduling.admin.common.safe_text import column
from scheduling.admin.params.json_field import PrettyJSONField
from scheduling.admin.targets.uses import Uses
from scheduling.admin.ui.targets import unknown_code
from scheduling.admin.ui.text import first_line
from scheduling.core.text import visible_text
from scheduling.models import Reminder


class ReminderForm(forms.ModelForm):
    """The form of a reminder. Users write each recipient's email address on a separate line."""

    params = PrettyJSONField(label=_("Parameters"), help_text=_("A JSON object."))

    def clean_recipients(self) -> str:
        """Returns the email addresses, one on each line, without empty lines. An error names the invalid addresses."""
        lines = [line.strip() for line in self.cleaned_data["recipients"].splitlines() if line.strip()]
        wrong = []
        for line in lines:
            try:
                validate_email(line)
            except ValidationError:
                wrong.append(line)
        if wrong:
            names = ", ".join(f"“{visible_text(line, 80)}”" for line in wrong[:3])
            raise ValidationError(_("Not an e-mail address: %(names)s."), code="email", params={"names": names})
        return "\n".join(lines)


@admin.register(Reminder)
class ReminderAdmin(Uses):
    form = ReminderForm
    list_display = (column(Reminder, "name"), column(Reminder, "subject"), "to")
    search_fields = ("name", "subject", "recipients")
    no_rows = _("A reminder is an e-mail that a schedule sends at its times.")
    fieldsets = (
        (None, {"fields": ("name", "subject", "body", "recipients")}),
        (_("Parameters"), {"classes": ("collapse",), "fields": ("params",)}),
    )

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Adds a sentence if no code sends reminders."""
        row = context.get("original")
        context["no_code"] = unknown_code("reminder") if row is not None and self.code_of(row) is None else ""
        return super().render_change_form(request, context, *args, **kwargs)

    @admin.display(description=_("Recipients"))
    def to(self, row: Reminder) -> str:
        """The first recipient's email address, and the number of further recipients."""
        lines = row.recipients.splitlines()
        return first_line(row.recipients, 60) + (f" +{len(lines) - 1}" if len(lines) > 1 else "")
