"""The pages of calendars: times at which the schedules that name the calendar do not run."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone as clock
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from scheduling.admin.calendars.form import CalendarForm
from scheduling.admin.calendars.preview import MOST_TYPED, calendar_panel, too_long_panel
from scheduling.admin.calendars.uses import uses_of, why_protected
from scheduling.admin.common.audited import Audited
from scheduling.admin.common.filters import GroupFilter
from scheduling.admin.common.grouped_rows import GroupedRows
from scheduling.admin.common.pages import Page
from scheduling.admin.common.safe_text import column
from scheduling.admin.common.viewer import Viewer
from scheduling.admin.ui.badges import badge
from scheduling.admin.ui.links import admin_url
from scheduling.admin.ui.media import page_media
from scheduling.admin.ui.times import EMPTY, time_with_relative
from scheduling.conf import get_conf
from scheduling.core.text import visible_text
from scheduling.models import Calendar
from scheduling.models.calendar import LONG
from scheduling.models.visibility import visibility_of
from scheduling.operations.entries_diff import entries_edit
from scheduling.operations.params_diff import Change

LONGEST_ZONE = 65
"""The check cuts zone names to this length, which is one more than the model allows. So a cut name is refused."""


@admin.register(Calendar)
class CalendarAdmin(GroupedRows, Audited):
    form = CalendarForm
    change_form_template = "admin/scheduling/calendar/change_form.html"
    list_display = (
        column(Calendar, "name"), column(Calendar, "description"), "zone_shown", "dates_until", "usable",
        "group_shown",
    )  # fmt: skip
    list_filter = (("group", GroupFilter),)
    list_select_related = ("group",)
    search_fields = ("name", "description")
    readonly_fields = ("excluded", "created", "changed")
    ordering = ("name",)
    no_rows = _("A calendar has dates, ranges and windows at which the schedules that name it do not run.")
    pages: tuple[Page, ...] = (Page("check", "check", "check/", ("POST",)),)

    @property
    def media(self) -> forms.Media:
        return super().media + page_media(sheets=("scheduler", "calendar"), scripts=("live",))

    def code_of(self, row: Any) -> None:
        """A calendar names no code."""

    def get_fields(self, request: HttpRequest, obj: Calendar | None = None) -> tuple[str, ...]:
        own = ("name", "description", "timezone", "entries", "excluded", "group")
        return own if obj is None else (*own, "created", "changed")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Calendar]:
        """Lists and choices need no entries, which may be long. The page of a calendar loads them on demand."""
        found: QuerySet[Calendar] = super().get_queryset(request)
        return visibility_of(request.user).only(found).defer(*LONG)

    def has_check_permission(self, request: HttpRequest) -> bool:
        return self.has_add_permission(request) or self.has_change_permission(request)

    def check_view(self, request: HttpRequest) -> HttpResponse:
        """The panel of the typed entries as HTML. Nothing is stored. It is a POST, because entries may be long."""
        entries = request.POST.get("entries", "")
        zone_name = request.POST.get("timezone", "").strip()[:LONGEST_ZONE] or get_conf().timezone
        long = len(entries) > MOST_TYPED
        panel = too_long_panel() if long else calendar_panel(entries, zone_name, clock.now())
        # Scripts recognise the content by this header. A login page does not have the header.
        return HttpResponse(str(panel), headers={"X-Part": "excluded", "Cache-Control": "no-store"})

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Adds why the stored calendar cannot be used, and which schedules name it."""
        row = context.get("original")
        if row is not None:
            stored = Calendar.objects.filter(pk=row.pk).values_list("error", flat=True).first()
            context["calendar_error"] = visible_text(stored or "", 500)
            if not context.get("is_popup"):
                context["uses"] = uses_of(row, Viewer.of(request))
        return super().render_change_form(request, context, *args, **kwargs)

    def edits_of(self, form: Any) -> list[Change]:
        """The changed fields. Of the entries, the lines that are new or gone."""
        edits = super().edits_of(form)
        old, new = str(form.initial.get("entries") or ""), str(form.cleaned_data.get("entries") or "")
        return [entries_edit(old, new) if edit.name == "entries" else edit for edit in edits]

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Names the schedules that use the calendars. A calendar in use cannot be deleted."""
        to_delete, counts, missing, protected = super().get_deleted_objects(objs, request)
        return (
            to_delete, counts, missing,
            why_protected(objs, visibility_of(request.user)) if protected else protected,
        )  # fmt: skip

    @admin.display(description=_("What it excludes"))
    def excluded(self, row: Calendar) -> SafeString:
        """What the values in the form exclude. A script updates the panel while the user types."""
        return format_html(
            '<div class="sch-live" data-live-url="{}" data-live-post data-live-fields="entries timezone" '
            'data-live-failed="{}">{}</div><p class="sch-hidden" role="status" aria-live="polite"></p>',
            admin_url("scheduling_calendar_check"),
            _t("Not updated: the server does not answer."),
            calendar_panel(row.entries, row.zone_name, clock.now()),
        )

    @admin.display(description=_("Time zone"), ordering="timezone")
    def zone_shown(self, row: Calendar) -> str:
        return visible_text(row.zone_name, 64)

    @admin.display(description=_("Dates until"), ordering="last_date")
    def dates_until(self, row: Calendar) -> str:
        """The last day of the entries that name a year."""
        return EMPTY if row.last_date is None else f"{row.last_date:%Y-%m-%d}"

    @admin.display(description=_("State"))
    def usable(self, row: Calendar) -> SafeString | str:
        """A clear warning if the calendar cannot be used."""
        return badge(_t("cannot be used"), "warn", "bad", visible_text(row.error, 200)) if row.error else _t("in order")

    @admin.display(description=_("Group"), ordering="group")
    def group_shown(self, row: Calendar) -> str:
        return visible_text(row.group, 150) if row.group is not None else EMPTY

    @admin.display(description=_("Created"))
    def created(self, row: Calendar) -> str:
        return time_with_relative(row.created_at) or EMPTY

    @admin.display(description=_("Changed"))
    def changed(self, row: Calendar) -> str:
        return time_with_relative(row.updated_at) or EMPTY
