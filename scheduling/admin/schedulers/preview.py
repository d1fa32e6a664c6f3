"""Previews for the Scheduler's form. While a user types, the form shows the next runs and retries.

A preview stores nothing and makes few queries.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from django import forms
from django.core.exceptions import PermissionDenied
from django.forms.utils import ErrorList
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.common.pages import READ, Page, Pages
from scheduling.admin.common.time_span_field import RETRY_LABELS, TimeSpanField
from scheduling.admin.schedulers.form import params_form
from scheduling.admin.schedulers.next_runs_panel import Note, next_runs_panel
from scheduling.admin.schedulers.panels import refused
from scheduling.admin.schedulers.retry_panel import retry_panel
from scheduling.admin.schedulers.wall_clock import WallClockField
from scheduling.admin.ui.links import admin_url
from scheduling.core.cron import ZoneError, resolve_wall, zone
from scheduling.core.zones import instants
from scheduling.handlers.targets import find_target
from scheduling.models import Scheduler
from scheduling.models.own_retry_policy import RETRY_COLUMNS
from scheduling.models.scheduler import TARGETS
from scheduling.models.visibility import visibility_of

FIELDS = {
    "runs": ("schedule", "date_time_0", "date_time_1", "timezone", "paused"),
    "retry": (*TARGETS, *RETRY_COLUMNS),
}
"""Maps each panel to the names of the form's fields on which the panel depends."""
LONGEST_NUMBER = 20
LONGEST_ZONE = 65
"""The preview cuts zone names to this length, which is one more than the model allows. So a cut name is refused."""


class Typed(forms.Form):
    """Reads the typed values. The model and the parser check them later."""

    date_time = WallClockField(required=False)

    def __init__(self, data: dict[str, str]) -> None:
        super().__init__(data)
        self.fields |= forms.fields_for_model(Scheduler, [*RETRY_COLUMNS])
        self.fields |= {name: TimeSpanField(label=label) for name, label in RETRY_LABELS.items()}
        self.fields |= {name: forms.IntegerField(required=False) for name in TARGETS}


def live_panel(part: str, panel: object) -> SafeString:
    """Puts the panel into an element that a script updates while the user types."""
    return format_html(
        '<div class="sch-live" data-live-url="{}" data-live-fields="{}" data-live-failed="{}">{}</div>'
        '<p class="sch-hidden" role="status" aria-live="polite"></p>',
        admin_url("scheduling_scheduler_preview", part),
        " ".join(FIELDS[part]),
        _("Not updated: the server does not answer."),
        panel,
    )


class Preview(Pages):
    """The views from which scripts fetch the panels and the parameters of the Scheduler's form."""

    pages: tuple[Page, ...] = (
        Page("preview", "preview", "preview/<slug:part>/", READ),
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
        if part not in FIELDS:
            raise Http404
        panels: dict[str, Callable[[dict[str, str]], object]] = {"runs": runs_preview, "retry": retry_preview}
        return _fragment(part, panels[part]({name: request.GET.get(name, "") for name in FIELDS[part]}))


def _fragment(part: str, content: object) -> HttpResponse:
    # Scripts recognise the content by this header. A login page does not have the header.
    return HttpResponse(str(content), headers={"X-Part": part, "Cache-Control": "no-store"})


def runs_preview(typed: dict[str, str]) -> SafeString:
    """The next runs of the typed schedule."""
    # The cron expression may have any length, because the parser checks the length first.
    row = Scheduler(
        schedule=typed["schedule"].strip(),
        timezone=typed["timezone"].strip()[:LONGEST_ZONE],
        status=not typed["paused"],
    )
    fields = Typed({name: value[:LONGEST_NUMBER] for name, value in typed.items() if name.startswith("date_")})
    if not fields.is_valid():
        return refused(_joined(fields.errors["date_time"]))
    local: datetime | None = fields.cleaned_data["date_time"]
    if local is None:
        return next_runs_panel(row)
    if row.schedule:
        return refused(_("Give either a cron schedule or one date and time."))
    try:
        row.date_time = resolve_wall(local, row.zone_name)
        return next_runs_panel(row, notes=_wall_notes(local, row))
    except (ZoneError, ValueError) as error:
        return refused(error)


def _wall_notes(local: datetime, row: Scheduler) -> list[Note]:
    first, second = instants(local, zone(row.zone_name))
    reading = {"reading": f"{local:%H:%M}"}
    if first > second:
        return [("warn", _("The clocks skip %(reading)s on this day: it runs right after.") % reading)]
    if first < second:
        return [("warn", _("The clocks show %(reading)s twice on this day: it runs the first time.") % reading)]
    return []


def retry_preview(typed: dict[str, str]) -> SafeString:
    """The table of attempts of the typed retry policy."""
    fields = Typed({name: value[:LONGEST_NUMBER] for name, value in typed.items()})
    if not fields.is_valid():
        return refused(" ".join(f"{fields[name].label}: {_joined(texts)}" for name, texts in fields.errors.items()))
    keys = {name: fields.cleaned_data[name] for name in TARGETS}
    # An empty key, or the key of a deleted row, means that no target is chosen.
    found = {name: find_target(name, key) for name, key in keys.items() if key}
    row = Scheduler(**{name: fields.cleaned_data[name] for name in RETRY_COLUMNS}, **found)
    return SafeString(retry_panel(row))


def _joined(texts: ErrorList) -> str:
    return " ".join(map(str, texts))
