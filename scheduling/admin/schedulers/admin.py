"""The pages of Schedulers, on which operators define what runs and when."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduling.admin.common.filter_bar import ListView
from scheduling.admin.common.filters import GroupFilter, SchedulerTypeFilter
from scheduling.admin.common.own_rows import own_groups_only
from scheduling.admin.schedulers.after_fields import seen_only
from scheduling.admin.schedulers.backfill import BackfillPages
from scheduling.admin.schedulers.choices import allowed_targets_only
from scheduling.admin.schedulers.duplicate import Duplicate
from scheduling.admin.schedulers.fieldsets import FIELDSETS, FOLDED
from scheduling.admin.schedulers.form import SchedulerForm
from scheduling.admin.schedulers.health_filter import HealthFilter
from scheduling.admin.schedulers.next_runs_panel import next_runs_panel
from scheduling.admin.schedulers.overview import Overview
from scheduling.admin.schedulers.pause import PauseActions
from scheduling.admin.schedulers.ping_fields import PING_URL
from scheduling.admin.schedulers.ping_pages import PingPages, stored_column
from scheduling.admin.schedulers.preview import Preview, changes_of, live_panel
from scheduling.admin.schedulers.retry_panel import retry_panel
from scheduling.admin.schedulers.revisions import CHANGE_REASON, Revisions
from scheduling.admin.schedulers.run_now import RunNow
from scheduling.admin.schedulers.state_filter import StateFilter
from scheduling.admin.schedulers.why_at import WhyAt
from scheduling.admin.ui.autocomplete import Autocomplete
from scheduling.admin.ui.badges import NO_CODE
from scheduling.admin.ui.media import page_media
from scheduling.admin.ui.times import EMPTY, time_tag
from scheduling.core.cron import ZoneError, zone
from scheduling.core.health import Health
from scheduling.core.known_sentences import for_reader
from scheduling.core.targets import TARGETS
from scheduling.core.text import visible_text
from scheduling.handlers import Handler
from scheduling.handlers.targets import handler_behind, handler_of
from scheduling.models import Scheduler
from scheduling.models.after import predecessor_words
from scheduling.models.entry_group import group_of
from scheduling.models.own_timing import PLAIN
from scheduling.models.visibility import Visibility, visibility_of
from scheduling.operations.audit import message
from scheduling.operations.names import SCHEDULE_COLUMNS
from scheduling.operations.params_diff import Change

SEEN_BY = "_scheduling_seen_by"
"""The attribute of the form's row with what the user sees. A read-only field does not get the request."""

OWN_ONLY = {"group": own_groups_only, "after": seen_only}
"""The fields that offer only what belongs to the user."""


def _is_empty(name: str, value: object) -> bool:
    return value is None or value is False or value == "" or value == PLAIN.get(name)  # 0 retries is a value


def _in_own_zone(row: Scheduler, name: str) -> str:
    try:
        return time_tag(getattr(row, name), zone(row.zone_name))
    except ZoneError:
        return time_tag(getattr(row, name))


def _target_label(row: Any) -> str:
    """A target among the choices. A schedule of a target without code would only fail."""
    known = handler_behind(str(row._meta.model_name), row) is not None
    return visible_text(row, 200) if known else f"{visible_text(row, 200)} ({NO_CODE})"


@admin.register(Scheduler)
class SchedulerAdmin(WhyAt, Preview, Duplicate, RunNow, BackfillPages, PauseActions, Revisions, PingPages, Overview):
    """The form of a schedule, and the list of schedules with the actions "resume", "pause", "run now", "backfill"."""

    form = SchedulerForm
    list_views = (
        ListView(gettext_lazy("All"), {}),
        ListView(gettext_lazy("Failing"), {"health": Health.FAILING.value}),
        ListView(gettext_lazy("Paused"), {"health": Health.PAUSED.value}),
    )
    list_filter = (HealthFilter, StateFilter, SchedulerTypeFilter, ("group", GroupFilter))
    search_fields = (*SCHEDULE_COLUMNS, "name", "source_file")
    search_help_text = gettext_lazy("Search name, target, cron")
    actions = ("resume_selected", "pause_selected", "run_selected", "backfill_selected")
    no_rows = gettext_lazy("A schedule runs a worker, a report or a reminder at its times.")
    raw_id_fields = ("user",)
    readonly_fields = ("next_runs", "what_changes", "retry_table")
    shown_instead = {
        PING_URL: "ping_url_shown", "params": "params_shown", "date_time": "date_shown", "user": "user_shown",
        "calendar": "calendar_shown", "paused": "paused_shown", "active_from": "active_from_shown",
        "active_until": "active_until_shown", "after": "after_shown",
    }  # fmt: skip
    fieldsets = FIELDSETS

    @property
    def media(self) -> Any:
        return super().media + page_media(sheets=("dashboard", "scheduler"), scripts=("live", "intervals"))

    def get_autocomplete_fields(self, request: HttpRequest) -> Any:
        """The user field has autocomplete if the project's user admin has search fields.

        Otherwise the operator types the primary key of a user.
        """
        user_admin = self.admin_site._registry.get(get_user_model())
        return ("user",) if user_admin is not None and user_admin.search_fields else ()

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Removes the buttons that add, change or delete a related row.

        The field of a target gets a button to view the target.
        """
        if db_field.name in (*self.get_autocomplete_fields(request), "after"):
            empty = _("No schedule") if db_field.name == "after" else _("No user")
            kwargs["widget"] = Autocomplete(db_field, self.admin_site, empty)
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and db_field.name in (*TARGETS, "user", "group", "calendar", "after"):
            for ability in ("can_add_related", "can_change_related", "can_delete_related"):
                setattr(field.widget, ability, False)
            if db_field.name in OWN_ONLY:
                OWN_ONLY[db_field.name](field, request)
            if db_field.name in TARGETS:
                options: Any = field
                options.label_from_instance = _target_label
                allowed_targets_only(options, request, db_field.name)
                field.widget.can_view_related = True
                field.widget.widget.attrs["data-params-target"] = ""
            elif db_field.name == "user":
                chooser: Any = field
                chooser.label_from_instance = visible_text
        return field

    no_params = gettext_lazy("The schedule gives no parameters. Those of its target are used.")

    def code_of(self, row: Scheduler) -> Handler | None:
        return handler_of(row)

    @admin.display(description=gettext_lazy("Date and time"))
    def date_shown(self, row: Scheduler) -> str:
        """The date and time in the schedule's zone."""
        return _in_own_zone(row, "date_time")

    @admin.display(description=gettext_lazy("Active from"))
    def active_from_shown(self, row: Scheduler) -> str:
        return _in_own_zone(row, "active_from")

    @admin.display(description=gettext_lazy("Active until"))
    def active_until_shown(self, row: Scheduler) -> str:
        return _in_own_zone(row, "active_until")

    @admin.display(description=gettext_lazy("Paused"), boolean=True)
    def paused_shown(self, row: Scheduler) -> bool:
        return not row.status

    @admin.display(description=gettext_lazy("Calendar"))
    def calendar_shown(self, row: Scheduler) -> str:
        """The calendar's name as safe text."""
        return visible_text(row.calendar, 100) if row.calendar is not None else EMPTY

    @admin.display(description=gettext_lazy("User"))
    def user_shown(self, row: Scheduler) -> str:
        """The user's name as safe text, because users choose their names themselves."""
        return visible_text(row.user, 150) if row.user is not None else EMPTY

    @admin.display(description=gettext_lazy("Start after"))
    def after_shown(self, row: Scheduler) -> str:
        """The predecessor, named so that all who see the schedule may read it."""
        if row.after_id is None:
            return EMPTY
        other = Scheduler.objects.filter(pk=row.after_id).first()
        return predecessor_words(other, row.group_id) if other is not None else EMPTY

    @admin.display(description=gettext_lazy("Next 10 runs"))
    def next_runs(self, row: Scheduler) -> str:
        """The next runs according to the values in the form. After a refused save, the form has the posted values.

        A script updates the panel while the user types.
        """
        return live_panel("runs", next_runs_panel(row), row.pk)

    @admin.display(description=gettext_lazy("What changes"))
    def what_changes(self, row: Scheduler) -> str:
        """The next runs before and after the edit, and the load of the next 24 hours. A script updates the panel."""
        visible: Visibility | None = getattr(row, SEEN_BY, None)
        return live_panel("changes", changes_of(row, visible), of=row.pk or 0) if visible is not None else EMPTY

    @admin.display(description=gettext_lazy("Attempts"))
    def retry_table(self, row: Scheduler) -> str:
        return live_panel("retry", retry_panel(row))

    def has_delete_permission(self, request: HttpRequest, obj: Scheduler | None = None) -> bool:
        """A user deletes only what the user may see."""
        return super().has_delete_permission(request, obj) and self.has_view_or_change_permission(request, obj)

    def save_model(self, request: HttpRequest, obj: Scheduler, form: ModelForm, change: bool) -> None:
        """A new schedule belongs to the user who adds it, unless the form names another user."""
        if not change and obj.user_id is None:
            obj.user_id = request.user.pk
        obj.paused_by = request.user.get_username()  # used only if this save pauses the schedule
        super().save_model(request, obj, form, change)

    def edits_of(self, form: Any) -> list[Change]:
        """The box "Paused" is recorded under the name of its column, as the buttons "Pause" and "Resume" are."""
        edits = [edit for edit in form.with_ping_url(super().edits_of(form)) if edit.name != CHANGE_REASON]
        return [Change("status", edit.new, edit.old) if edit.name == "paused" else edit for edit in edits]

    def construct_change_message(self, request: HttpRequest, form: Any, formsets: Any, add: bool = False) -> Any:
        """The audit entry of a copy names the copied schedule and the differences."""
        if add and form.source is not None:
            edits = self.edits_of(form)
            return message(f"added as a copy of schedule {form.source.pk}", edits, group_of(form.instance))
        return super().construct_change_message(request, form, formsets, add)

    def get_fieldsets(self, request: HttpRequest, obj: Scheduler | None = None) -> Any:
        """Folds the groups of fields that are empty. Django unfolds a group with errors."""
        found = []
        for title, options in super().get_fieldsets(request, obj):
            if obj is not None and not self.has_change_permission(request, obj):
                options = {**options, "fields": [name for name in options["fields"] if name != "what_changes"]}
            names = [name for name in options["fields"] if name in FOLDED]
            # A copy shows the values of its source.
            row = obj or self.source_of(request)
            # The copy of a schedule has no ping URL.
            empty = names and all(
                _is_empty(name, getattr(obj if name == PING_URL else row, stored_column(name), None)) for name in names
            )
            found.append((title, {**options, "classes": ["collapse"]} if empty else options))
        return found

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Adds the tabs, and the stored schedule's error. The error ignores unsaved values."""
        setattr(context["adminform"].form.instance, SEEN_BY, visibility_of(request.user))
        if wrong := [name for name in context["adminform"].form.fields if name in context["adminform"].form.errors]:
            # The browser shows and focuses the first field with an error.
            context["adminform"].form.fields[wrong[0]].widget.attrs["autofocus"] = True
        if context.get("original"):
            context |= self.tabs(request, context["original"])
            stored = Scheduler.objects.filter(pk=context["original"].pk).only("plan_error").first()
            context["plan_error"] = for_reader(stored.plan_error, 500) if stored is not None else ""
        else:
            context["copied"] = visible_text(source, 120) if (source := self.source_of(request)) is not None else ""
        return super().render_change_form(request, context, *args, **kwargs)
