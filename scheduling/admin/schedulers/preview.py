"""Previews for the Scheduler's form. While a user types, the form shows the next runs and retries.

A preview stores nothing and makes few queries.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from datetime import datetime
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.forms.utils import ErrorList
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone as clock
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy

from scheduling.admin.common.pages import READ, Page, Pages
from scheduling.admin.common.time_span_field import RETRY_LABELS, TimeSpanField
from scheduling.admin.schedulers.changes_panel import NOTHING, changes_panel
from scheduling.admin.schedulers.chosen_params import params_form
from scheduling.admin.schedulers.next_runs_panel import Note, next_runs_panel
from scheduling.admin.schedulers.panels import refused
from scheduling.admin.schedulers.retry_panel import retry_panel
from scheduling.admin.schedulers.wall_clock import WallClockField
from scheduling.admin.ui.links import admin_url
from scheduling.core.cron import ZoneError, resolve_again, zone
from scheduling.core.run_bounds import MOST_RUNS
from scheduling.core.targets import TARGETS
from scheduling.core.text import is_number
from scheduling.core.zones import instants
from scheduling.execution.edited_plan import as_saved
from scheduling.handlers.targets import find_target
from scheduling.models import Scheduler
from scheduling.models.own_retry_policy import RETRY_COLUMNS
from scheduling.models.own_timing import PLAIN, timing_errors
from scheduling.models.visibility import Visibility, visibility_of

TIMES = (
    "schedule", "date_time_0", "date_time_1", "timezone", "paused", "previewed", "spread_seconds", "spread_each",
    "missed_runs", "missed_cap", "missed_within_seconds", "active_from_0", "active_from_1", "active_until_0",
    "active_until_1", "on_excluded", "calendar", "max_runs",
)  # fmt: skip
FIELDS = {
    "runs": TIMES,
    "changes": TIMES,
    "retry": (*TARGETS, *RETRY_COLUMNS),
}
"""Maps each panel to the names of the form's fields on which the panel depends."""
LONGEST_NUMBER = 20
LONGEST_ZONE = 65
"""The preview cuts zone names to this length, which is one more than the model allows. So a cut name is refused."""


class Typed(forms.Form):
    """Reads the typed values. The model and the parser check them later."""

    date_time = WallClockField(required=False, label=_lazy("Date and time"))
    previewed = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1)
    """The number of the schedule, from which its offset is computed."""
    spread_seconds = TimeSpanField(unit=1_000, label=_lazy("Spread"))
    spread_each = forms.BooleanField(required=False)
    missed_runs = forms.CharField(required=False)
    missed_cap = forms.IntegerField(required=False, label=_lazy("Missed runs, at most"))
    missed_within_seconds = TimeSpanField(unit=1_000, label=_lazy("Missed runs, not older than"))
    active_from = WallClockField(required=False, label=_lazy("Active from"))
    active_until = WallClockField(required=False, label=_lazy("Active until"))
    on_excluded = forms.CharField(required=False)
    calendar = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1)
    max_runs = forms.IntegerField(required=False, min_value=1, max_value=MOST_RUNS, label=_lazy("Number of runs"))

    def __init__(self, data: dict[str, str]) -> None:
        super().__init__(data)
        self.fields |= forms.fields_for_model(Scheduler, [*RETRY_COLUMNS])
        self.fields |= {name: TimeSpanField(label=label) for name, label in RETRY_LABELS.items()}
        self.fields |= {name: forms.IntegerField(required=False) for name in TARGETS}


def live_panel(part: str, panel: object, pk: int | None = None, of: int | None = None) -> SafeString:
    """Puts the panel into an element that a script updates while the user types.

    Args:
        pk: the number of the schedule, if it has one and the panel needs it.
        of: the primary key of the stored schedule, if the panel depends on it; 0 for a new one.
    """
    number = format_html('<input type="hidden" name="previewed" value="{}">', pk) if pk is not None else ""
    own = (
        admin_url("scheduling_scheduler_preview", part) if of is None else admin_url(f"scheduling_scheduler_{part}", of)
    )
    return format_html(
        '<div class="sch-live" data-live-url="{}" data-live-fields="{}" data-live-failed="{}">{}</div>'
        '<p class="sch-hidden" role="status" aria-live="polite"></p>{}',
        own,
        " ".join(FIELDS[part]),
        _("Not updated: the server does not answer."),
        panel,
        number,
    )


class Preview(Pages):
    """The views from which scripts fetch the panels and the parameters of the Scheduler's form."""

    pages: tuple[Page, ...] = (
        Page("preview", "preview", "preview/<slug:part>/", READ),
        Page("changes", "preview", "changes/<int:pk>/", READ),
        Page("params", "preview", "params/<int:pk>/", ("POST",)),
    )

    def has_preview_permission(self, request: HttpRequest) -> bool:
        return self.has_add_permission(request) or self.has_change_permission(request)

    def params_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The parameter fields of the form as HTML, after the user has chosen another target. Nothing is stored.

        The request is a POST, because typed values may be too long for a URL. `pk` is 0 for a new schedule.
        """
        row = visibility_of(request.user).schedules().filter(pk=pk).first() if pk else None
        # The form of a copy sends the primary key of the copied schedule. A user who may add schedules needs only the
        # permission to view the copied schedule.
        adding = self.has_add_permission(request) and (row is None or self.has_view_permission(request, row))
        if not (adding or (row is not None and self.has_change_permission(request, row))):
            raise PermissionDenied
        return _fragment("params", params_form(row or Scheduler(), request.POST))

    def preview_view(self, request: HttpRequest, part: str) -> HttpResponse:
        """A panel as HTML, for users who may add or edit schedules."""
        if part not in PREVIEWS:
            raise Http404
        typed = _typed(request, part)
        key = typed.get("previewed", "")
        known = visibility_of(request.user).schedules().filter(pk=int(key)) if is_number(key) else None
        return _fragment(part, PREVIEWS[part](typed, None if known is None else known.first()))

    def changes_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The panel "What changes" as HTML. `pk` is 0 for a new schedule."""
        visible = visibility_of(request.user)
        if not (self.has_change_permission(request) if pk else self.has_add_permission(request)):
            raise PermissionDenied
        stored = visible.schedules().filter(pk=pk).first() if pk else None
        if pk and stored is None:
            return self.not_found(request, str(pk))
        typed = _typed(request, "changes")
        if stored is not None and request.GET.get("calendar", "") == str(stored.calendar_id):
            typed["calendar"] = str(stored.calendar_id)  # a calendar of another group stays, and no reason is shown
        return _fragment("changes", changes_preview(typed, stored, visible))


def _typed(request: HttpRequest, part: str) -> dict[str, str]:
    typed = {name: request.GET.get(name, "") for name in FIELDS[part]}
    if not _sees_calendar(request, typed.get("calendar", "")):
        typed["calendar"] = ""
    return typed


def _sees_calendar(request: HttpRequest, key: str) -> bool:
    """Whether the user sees the calendar with this primary key. Its reasons are shown to no other user."""
    return is_number(key) and visibility_of(request.user).calendars().filter(pk=int(key)).exists()


def _fragment(part: str, content: object) -> HttpResponse:
    # Scripts recognise the content by this header. A login page does not have the header.
    return HttpResponse(str(content), headers={"X-Part": part, "Cache-Control": "no-store"})


def runs_preview(typed: dict[str, str], stored: Scheduler | None = None) -> SafeString:
    """The next runs of the typed schedule. The stored one has been seen by the user, and its runs were counted."""
    try:
        row, notes = _typed_row(typed, stored)
        return next_runs_panel(row if stored is None else as_saved(stored, row, clock.now()), notes=notes)
    except (ZoneError, ValueError) as error:
        return refused(error)


def changes_preview(typed: dict[str, str], stored: Scheduler | None, visible: Visibility) -> SafeString:
    """The next runs of the stored and of the typed schedule, and the load."""
    try:
        row, _notes = _typed_row(typed, stored)
    except (ZoneError, ValueError):
        return NOTHING  # the panel of the next runs says why
    return changes_panel(stored, row, visible)


def changes_of(row: Scheduler, visible: Visibility) -> SafeString:
    """What the values of the form's row change. After a refused save, the row has the posted values."""
    stored = visible.schedules().filter(pk=row.pk).first() if row.pk else None
    return changes_panel(stored, row, visible)


def _typed_row(typed: dict[str, str], stored: Scheduler | None) -> tuple[Scheduler, list[Note]]:
    """A schedule with the typed times, and what the clocks do with a typed date.

    Raises:
        ZoneError, ValueError: the text says what cannot be used.
    """
    # The cron expression may have any length, because the parser checks the length first.
    row = Scheduler() if stored is None else copy(stored)
    row.schedule, row.timezone = typed["schedule"].strip(), typed["timezone"].strip()[:LONGEST_ZONE]
    row.status, row.date_time = not typed["paused"], None
    own = typed.keys() - {"schedule", "timezone", "paused"}
    fields = Typed({name: typed[name][:LONGEST_NUMBER] for name in own})
    if not fields.is_valid():
        raise ValueError(_wrong(fields))
    local: datetime | None = fields.cleaned_data["date_time"]
    if local is not None and row.schedule:
        raise ValueError(_("Give either a cron schedule or one date and time."))
    _take_rules(row, fields.cleaned_data, stored)
    if local is None:
        return row, []
    row.date_time = resolve_again(local, row.zone_name, None if stored is None else stored.date_time)
    return row, _wall_notes(local, row)


def _take_rules(row: Scheduler, typed: dict[str, Any], stored: Scheduler | None) -> None:
    """Write the typed rules into the row.

    Raises:
        ZoneError: the zone is unknown.
        ValueError: a rule cannot be used. The message is a sentence.
    """
    row.pk = typed["previewed"] if stored is None else stored.pk
    row.calendar_id, row.max_runs = typed["calendar"], typed["max_runs"]
    for name in PLAIN:
        value = typed[name]
        if isinstance(value, datetime):
            value = resolve_again(value, row.zone_name, getattr(stored, name, None))
        setattr(row, name, PLAIN[name] if value in (None, "") else value)
    if errors := timing_errors(row):
        raise ValueError(" ".join(message for error in errors.values() for message in error.messages))


def _wall_notes(local: datetime, row: Scheduler) -> list[Note]:
    first, second = instants(local, zone(row.zone_name))
    reading = {"reading": f"{local:%H:%M}"}
    if first > second:
        return [("warn", _("The clocks skip %(reading)s on this day: it runs right after.") % reading)]
    if first < second:
        if row.date_time is not None and row.date_time >= second:  # so it is stored, and stays
            return [("warn", _("The clocks show %(reading)s twice on this day: it runs the second time.") % reading)]
        return [("warn", _("The clocks show %(reading)s twice on this day: it runs the first time.") % reading)]
    return []


def retry_preview(typed: dict[str, str], _stored: Scheduler | None = None) -> SafeString:
    """The table of attempts of the typed retry policy."""
    fields = Typed({name: value[:LONGEST_NUMBER] for name, value in typed.items()})
    if not fields.is_valid():
        return refused(_wrong(fields))
    keys = {name: fields.cleaned_data[name] for name in TARGETS}
    # An empty key, or the key of a deleted row, means that no target is chosen.
    found = {name: find_target(name, key) for name, key in keys.items() if key}
    row = Scheduler(**{name: fields.cleaned_data[name] for name in RETRY_COLUMNS}, **found)
    return SafeString(retry_panel(row))


PREVIEWS: dict[str, Callable[[dict[str, str], Scheduler | None], SafeString]] = {
    "runs": runs_preview,
    "retry": retry_preview,
}
"""Maps the panels that need no stored schedule to their functions."""


def _wrong(fields: Typed) -> str:
    date = fields.errors.get("date_time")
    if date is not None:
        return _joined(date)
    return " ".join(f"{fields[name].label}: {_joined(texts)}" for name, texts in fields.errors.items())


def _joined(texts: ErrorList) -> str:
    return " ".join(map(str, texts))
