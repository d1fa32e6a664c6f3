"""Reminders: messages to send on a schedule."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.translation import gettext_lazy as _

from scheduling.admin.legible import column
from scheduling.admin.masked import MaskedParams
from scheduling.admin.parts import MEDIA, PrettyJSONField, first_line
from scheduling.admin.scheduler_panels import handler_named
from scheduling.admin.text import shown
from scheduling.admin.trailed import Trailed
from scheduling.models import Reminder
from scheduling.registry import Handler


class ReminderForm(forms.ModelForm):
    """Each line of the recipients is an address."""

    params = PrettyJSONField(label=_("Parameters"), help_text=_("A JSON object."))

    def clean_recipients(self) -> str:
        """One address a line, without empty lines; what is none is named."""
        lines = [line.strip() for line in self.cleaned_data["recipients"].splitlines() if line.strip()]
        wrong = []
        for line in lines:
            try:
                validate_email(line)
            except ValidationError:
                wrong.append(line)
        if wrong:
            names = ", ".join(f"“{shown(line, 80)}”" for line in wrong[:3])
            raise ValidationError(_("Not an e-mail address: %(names)s."), code="email", params={"names": names})
        return "\n".join(lines)


@admin.register(Reminder)
class ReminderAdmin(Trailed, MaskedParams):
    """Subject, text and addressees."""

    form = ReminderForm
    list_display = (column(Reminder, "name"), column(Reminder, "subject"), "to")
    search_fields = ("name", "subject", "recipients")
    fieldsets = (
        (None, {"fields": ("name", "subject", "body", "recipients")}),
        (_("Parameters"), {"classes": ("collapse",), "fields": ("params",)}),
    )

    @property
    def media(self) -> Any:
        """The stock scripts and our style sheet."""
        return super().media + MEDIA

    def code_of(self, row: Reminder) -> Handler | None:
        """One for all of them."""
        return handler_named("reminder", row.handler_name)

    @admin.display(description=_("Recipients"))
    def to(self, row: Reminder) -> str:
        """The first of them, and how many."""
        lines = row.recipients.splitlines()
        return first_line(row.recipients, 60) + (f" +{len(lines) - 1}" if len(lines) > 1 else "")
