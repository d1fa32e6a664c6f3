"""Duplicates a schedule: opens the form of a new schedule with the values of another schedule.

The copy is paused until a user resumes it.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.forms import ModelForm, model_to_dict
from django.http import HttpRequest
from django.utils.translation import gettext as _

from scheduling.admin.schedulers.form import SchedulerForm, wall
from scheduling.models import Scheduler
from scheduling.models.plan import INSTANTS
from scheduling.models.visibility import visibility_of

ARGUMENT = "copy"


class Duplicate(admin.ModelAdmin):
    """Fills the add page with the values of the schedule that the query string names: `?copy=<id>`."""

    def source_of(self, request: HttpRequest) -> Scheduler | None:
        """The schedule that the query string names; None if the schedule does not exist or the user may not view it."""
        found: dict[str, Scheduler | None] = request.__dict__.setdefault("_copied", {})  # Django asks several times
        if (key := request.GET.get(ARGUMENT, "")) not in found:
            row: Scheduler | None = self.get_object(request, key) if key else None
            found[key] = row if row is not None and self.has_view_or_change_permission(request, row) else None
        return found[key]

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """The values of the copied schedule. The form masks the secrets later."""
        source = self.source_of(request)
        if source is None:
            given = super().get_changeform_initial_data(request)
            given.pop("date_time", None)  # it is text, but the two inputs for date and time show only a datetime
            return given
        limit = Scheduler._meta.get_field("description").max_length
        values = model_to_dict(source)
        values |= {
            "description": (_("%(name)s (copy)") % {"name": source.description or source})[:limit],
            **{name: wall(source, name) for name in INSTANTS},
            "paused": True,
            "pause_reason": "",
        }
        return values

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> type[ModelForm]:
        """Tells the form which schedule is copied, and what the user sees. The copy takes unchanged secrets over."""
        form = super().get_form(request, obj, change=change, **kwargs)
        if issubclass(form, SchedulerForm):
            form.source = None if change else self.source_of(request)
            form.visible = visibility_of(request.user)
        return form
