"""Schedulers: the page on which operators say what runs, and when."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.utils import timezone as clock
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduling.admin.around import overdue
from scheduling.admin.autocomplete import Autocomplete
from scheduling.admin.dashboard.viewer import Viewer
from scheduling.admin.duplicate import ARGUMENT, Duplicate
from scheduling.admin.filters import SchedulerTypeFilter
from scheduling.admin.masked import MaskedParams
from scheduling.admin.next_runs import next_runs_panel
from scheduling.admin.params_form import MEDIA as PARAMS_MEDIA
from scheduling.admin.parts import EMPTY, MEDIA, shown, stamp
from scheduling.admin.preview import Preview, live
from scheduling.admin.recent_runs import recent_runs
from scheduling.admin.run_now import RunNow
from scheduling.admin.scheduler_form import SchedulerForm
from scheduling.admin.scheduler_list import SchedulerColumns, last_executions
from scheduling.admin.scheduler_panels import handler_of, retry_panel
from scheduling.admin.switch import Switch
from scheduling.admin.trail import edits
from scheduling.admin.trailed import Trailed
from scheduling.core.cron import ZoneError, zone
from scheduling.models import Scheduler
from scheduling.models.scheduler import TARGETS
from scheduling.registry import Handler


@admin.register(Scheduler)
class SchedulerAdmin(Preview, Duplicate, RunNow, Switch, SchedulerColumns, Trailed, MaskedParams):
    """List, form, and the actions on, off, run now."""

    form = SchedulerForm
    list_filter = ("status", SchedulerTypeFilter, "group")
    search_fields = (
        "description", "schedule", "worker__name", "worker__title",
        "report__controller", "report__title", "reminder__name",
    )  # fmt: skip
    search_help_text = gettext_lazy("Searches description, expression and target.")
    actions = ("switch_on", "switch_off", "run_selected")
    raw_id_fields = ("user",)
    readonly_fields = ("next_runs", "retry_table")
    shown_instead = {"params": "params_shown", "date_time": "date_shown", "user": "user_shown"}
    fieldsets = (
        (None, {"fields": ("description",)}),
        (
            gettext_lazy("What"),
            {
                "fields": ("worker", "report", "reminder", "params"),
                "description": gettext_lazy("Choose one of the three."),
            },
        ),
        (
            gettext_lazy("When"),
            {
                "fields": ("schedule", "date_time", "timezone", "status", "pause_reason", "next_runs"),
                "description": gettext_lazy(
                    "Give a schedule, or one date and time. Where clocks change, a job at fixed hours runs once in a "
                    "repeated hour and right after a skipped one; a job such as */10 follows real time."
                ),
            },
        ),
        (
            gettext_lazy("Retry policy"),
            {
                "fields": (
                    "max_retries", "retry_delay_ms", "retry_multiplier", "retry_max_delay_ms", "retry_jitter",
                    "retry_table",
                ),
                "description": gettext_lazy("What is empty is inherited from the target's code or the settings."),
            },
        ),
        (gettext_lazy("Run control"), {"fields": ("time_limit", "stay_alive", "language")}),
        (gettext_lazy("Who"), {"fields": ("user", "group")}),
    )  # fmt: skip

    @property
    def media(self) -> Any:
        """The stock scripts, our style sheets, and what makes the panels follow the keys."""
        # Deferred: it stands in the head, and looks for what stands in the body.
        script: Any = forms.Script("scheduling/live.js", defer=True)
        sheets = ["scheduling/dashboard.css", "scheduling/scheduler.css"]
        return super().media + MEDIA + PARAMS_MEDIA + forms.Media(css={"all": sheets}, js=[script])

    def get_autocomplete_fields(self, request: HttpRequest) -> Any:
        """The user is found by typing where the project's user admin can search; else by key."""
        user_admin = self.admin_site._registry.get(get_user_model())
        return ("user",) if user_admin is not None and user_admin.search_fields else ()

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Targets are made by code, not from here: only the way to look at one is kept."""
        if db_field.name in self.get_autocomplete_fields(request):
            kwargs["widget"] = Autocomplete(db_field, self.admin_site, _("Nobody"))
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and db_field.name in (*TARGETS, "user", "group"):
            for ability in ("can_add_related", "can_change_related", "can_delete_related"):
                setattr(field.widget, ability, False)
            if db_field.name in TARGETS:
                field.widget.can_view_related = True
            elif db_field.name == "user":
                chooser: Any = field
                chooser.label_from_instance = shown
        return field

    def code_of(self, row: Scheduler) -> Handler | None:
        """The code behind the target."""
        return handler_of(row)

    @admin.display(description=gettext_lazy("Date and time"))
    def date_shown(self, row: Scheduler) -> str:
        """On the clock of the schedule's zone."""
        try:
            return stamp(row.date_time, zone(row.zone_name))
        except ZoneError:
            return stamp(row.date_time)

    @admin.display(description=gettext_lazy("User"))
    def user_shown(self, row: Scheduler) -> str:
        """By name, which people choose themselves."""
        return shown(row.user, 150) if row.user is not None else EMPTY

    @admin.display(description=gettext_lazy("Next 10 runs"))
    def next_runs(self, row: Scheduler) -> str:
        """As the form stands, also when it was refused for something else; a script keeps it up with the keys."""
        return live("runs", next_runs_panel(row))

    @admin.display(description=gettext_lazy("Attempts"))
    def retry_table(self, row: Scheduler) -> str:
        """As the form stands."""
        return live("retry", retry_panel(row))

    def save_model(self, request: HttpRequest, obj: Scheduler, form: ModelForm, change: bool) -> None:
        """Who adds it is its user, unless the form names one."""
        if not change and obj.user_id is None:
            obj.user_id = request.user.pk
        super().save_model(request, obj, form, change)

    def construct_change_message(self, request: HttpRequest, form: Any, formsets: Any, add: bool = False) -> Any:
        """A copy says of what, and in what it differs."""
        if add and form.source is not None:
            found = edits(form, handler_of(form.instance), form.former, form.former_code)
            return "; ".join(filter(None, [f"added as a copy of schedule {form.source.pk}", found]))
        return super().construct_change_message(request, form, formsets, add)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Who may do what, for the buttons."""
        context = {
            "may_run": self.has_run_permission(request),
            "may_pause": self.has_pause_permission(request),
            "may_add": self.has_add_permission(request),
            "copy_argument": ARGUMENT,
            "may_view_executions": request.user.has_perm("scheduling.view_schedulerexecution"),
            **(extra_context or {}),
        }
        return super().change_view(request, object_id, form_url, context)

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Above the form: how the stored row stands, whatever the form says; below it: how it ran."""
        if not context.get("original"):
            context["copied"] = shown(source, 120) if (source := self.source_of(request)) is not None else ""
        stored = Scheduler.objects.filter(pk=context["original"].pk).first() if context.get("original") else None
        if stored is not None:
            context["overdue"] = overdue(stored, clock.now())
            stored.last_execution = last_executions([stored.pk]).get(stored.pk)  # type: ignore[attr-defined]
            context["recent"] = recent_runs(stored, Viewer.of(request))
            context["plan_error"] = shown(stored.plan_error, 500)
            context["standing"], context["standing_on"] = self.standing(stored), stored.status
        return super().render_change_form(request, context, *args, **kwargs)
