"""The input of the entries of a calendar, with a folded legend of their syntax."""

from __future__ import annotations

from typing import Any

from django import forms
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _

TEMPLATE = "admin/scheduling/calendar/entries_input.html"

ENTRIES = (
    ("2026-12-25 Christmas", _("a day")),
    ("2026-12-24 14:00-24:00 early closing", _("a part of a day")),
    ("2026-12-24..2027-01-02 shop closed", _("a range of days, both included")),
    ("2026-12-24 18:00..2026-12-27 06:00 maintenance", _("a range of times")),
    ("every 12-25 Christmas", _("a day of each year, the month first")),
    ("every 12-24..01-02 between the years", _("days of each year")),
    ("every 12-31 22:00-06:00", _("a part of a day of each year")),
    ("sat,sun", _("days of the week; also mon-fri")),
    ("mon-fri 09:00-17:30 trading hours", _("a window on days of the week")),
    ("22:00-06:00 night", _("a window of each day")),
)
"""An entry of each form, and what it excludes."""

PLACEHOLDER = "\n".join(
    (
        "2026-12-25 Christmas",
        "2026-12-24..2027-01-02 shop closed",
        "2026-12-24 18:00..2026-12-27 06:00 maintenance",
        "every 01-01 New Year",
        "sat,sun",
        "mon-fri 09:00-17:30 trading hours",
        "22:00-06:00 night",
    )
)


class EntriesInput(forms.Textarea):
    """A text area for the entries. The legend needs no script."""

    def __init__(self) -> None:
        super().__init__(
            {"rows": 14, "class": "vLargeTextField sch-entries", "placeholder": PLACEHOLDER, "spellcheck": "false"}
        )

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        context = {"field": super().render(name, value, attrs, renderer), "entries": ENTRIES}
        return mark_safe(render_to_string(TEMPLATE, context))  # noqa: S308 - escaped by the template
