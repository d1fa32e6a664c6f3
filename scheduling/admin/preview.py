"""Preview: what the form's fields would lead to, while somebody types. Nothing is stored, and little is looked up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.forms.utils import ErrorList
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduling.admin.next_runs import Note, next_runs_panel
from scheduling.admin.params_form import ParamsForm
from scheduling.admin.scheduler_form import params_form
from scheduling.admin.scheduler_panels import refused, retry_panel
from scheduling.admin.wall_clock import WallClockField
from scheduling.core.cron import ZoneError, resolve_wall, zone
from scheduling.core.zones import instants
from scheduling.models import Scheduler
from scheduling.models.scheduler import TARGETS
from scheduling.targets import find_target

RETRY = ("max_retries", "retry_delay_ms", "retry_multiplier", "retry_max_delay_ms", "retry_jitter")
FIELDS = {
    "runs": ("schedule", "date_time_0", "date_time_1", "timezone", "status"),
    "retry": (*TARGETS, *RETRY),
}
"""By panel, the names of the form's fields that it follows from."""
LONGEST_NUMBER = 20
LONGEST_ZONE = 65
"""One more than the longest: the sentence about it says so."""


class Typed(forms.Form):
    """What was typed, as far as it can be read: the rules about it are the model's and the parser's."""

    max_retries = forms.IntegerField(required=False, min_value=0, label=gettext_lazy("Retries"))
    retry_delay_ms = forms.IntegerField(required=False, min_value=0, label=gettext_lazy("First retry delay (ms)"))
    retry_multiplier = forms.FloatField(required=False, label=gettext_lazy("Delay multiplier"))
    retry_max_delay_ms = forms.IntegerField(required=False, min_value=0, label=gettext_lazy("Longest delay (ms)"))
    retry_jitter = forms.NullBooleanField(required=False)
    worker = forms.IntegerField(required=False)
    report = forms.IntegerField(required=False)
    reminder = forms.IntegerField(required=False)
    date_time = WallClockField(required=False)


def live(part: str, panel: object) -> SafeString:
    """The panel, in a place that a script fills anew as one types; without one it stays as it was rendered."""
    return format_html(
        '<div class="sch-live" data-live-url="{}" data-live-fields="{}" data-live-failed="{}">{}</div>'
        '<p class="sch-hidden" role="status" aria-live="polite"></p>',
        reverse("admin:scheduling_scheduler_preview", args=[part]),
        " ".join(FIELDS[part]),
        _("Not updated: the server does not answer."),
        panel,
    )


class Preview(admin.ModelAdmin):
    """Gives the Scheduler's form the addresses that its panels and its parameters ask."""

    def get_urls(self) -> list[URLPattern]:
        """Before the catch-all of the change page."""
        wrap = self.admin_site.admin_view
        return [
            path("preview/<slug:part>/", wrap(self.preview_view), name="scheduling_scheduler_preview"),
            path("params/<int:pk>/", wrap(self.params_view), name="scheduling_scheduler_params"),
            *super().get_urls(),
        ]

    def params_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The parameters of the form as it stands, for another target or in the other way of writing.

        A POST, for it carries what was typed; nothing is stored. `pk` is 0 for a schedule that is being added.
        """
        row = Scheduler.objects.filter(pk=pk).first() if pk else None
        # The form of a copy asks with the key of the other one, which need only be seen for that.
        adding = self.has_add_permission(request) and (row is None or self.has_view_permission(request, row))
        if not (adding or (row is not None and self.has_change_permission(request, row))):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        form = params_form(row or Scheduler(), request.POST)
        return form.fragment(ParamsForm.wanted(request.POST) or "")

    def preview_view(self, request: HttpRequest, part: str) -> HttpResponse:
        """A panel, for who may add or edit schedules: nobody else has the form."""
        if not (self.has_add_permission(request) or self.has_change_permission(request)):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        if part not in FIELDS:
            raise Http404
        panels: dict[str, Callable[[dict[str, str]], object]] = {"runs": runs_preview, "retry": retry_preview}
        response = HttpResponse(str(panels[part]({name: request.GET.get(name, "") for name in FIELDS[part]})))
        # The script tells a panel from a login page by it.
        response["X-Part"] = part
        response["Cache-Control"] = "no-store"
        return response


def runs_preview(typed: dict[str, str]) -> SafeString:
    """The next runs of a schedule as it is typed."""
    # The parser measures before it reads, and says how many characters there are.
    row = Scheduler(
        schedule=typed["schedule"].strip(),
        timezone=typed["timezone"].strip()[:LONGEST_ZONE],
        status=bool(typed["status"]),
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
    """The table of attempts of a policy as it is typed."""
    fields = Typed({name: value[:LONGEST_NUMBER] for name, value in typed.items()})
    if not fields.is_valid():
        return refused(" ".join(f"{fields[name].label}: {_joined(texts)}" for name, texts in fields.errors.items()))
    keys = {name: fields.cleaned_data[name] for name in TARGETS}
    # A key of nothing, or of a row that is gone, is no target.
    found = {name: find_target(name, key) for name, key in keys.items() if key}
    row = Scheduler(**{name: fields.cleaned_data[name] for name in RETRY}, **found)
    return SafeString(retry_panel(row))


def _joined(texts: ErrorList) -> str:
    return " ".join(map(str, texts))
