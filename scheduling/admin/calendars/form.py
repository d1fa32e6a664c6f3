"""The form of a calendar."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from scheduling.admin.calendars.entries_input import EntriesInput
from scheduling.admin.ui.datalist import DatalistInput
from scheduling.conf import get_conf
from scheduling.core.calendar_entries import LONGEST_TEXT
from scheduling.core.zones import zone_names
from scheduling.models import Calendar

ENTRIES_HELP = _(
    "One entry a line, and then the reason, if you like. Lines that begin with # are comments. A window may pass "
    "midnight."
)


class CalendarForm(forms.ModelForm):
    """The errors of the entries name their lines."""

    entries = forms.CharField(
        label=_("Entries"), required=False, strip=False, max_length=LONGEST_TEXT, help_text=ENTRIES_HELP,
        widget=EntriesInput(),
    )  # fmt: skip

    needs_group = False
    """Whether the user may add only calendars of a group: the user does not see all groups. The page sets it."""

    class Meta:
        model = Calendar
        fields = ("name", "description", "timezone", "entries", "group")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.needs_group and "group" in self.fields:
            self.fields["group"].required = True
        if "timezone" in self.fields:
            field = self.fields["timezone"]
            field.widget = DatalistInput(zone_names(), {"class": "vTextField", "placeholder": get_conf().timezone})
            field.help_text = _("An IANA name such as Europe/Madrid. Empty: %(zone)s.") % {"zone": get_conf().timezone}

    def clean_entries(self) -> str:
        """The text with plain line ends, as plain SQL would write it."""
        return str(self.cleaned_data["entries"]).replace("\r\n", "\n")
