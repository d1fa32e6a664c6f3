"""Duplicate: the form of a new schedule, filled in from another one, and off until somebody switches it on."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.forms import ModelForm, model_to_dict
from django.http import HttpRequest
from django.utils.translation import gettext as _

from scheduling.admin.scheduler_form import SchedulerForm, wall
from scheduling.models import Scheduler

ARGUMENT = "copy"


class Duplicate(admin.ModelAdmin):
    """Gives the add page its argument."""

    def source_of(self, request: HttpRequest) -> Scheduler | None:
        """The schedule that the address names, for who may look at it."""
        key = request.GET.get(ARGUMENT, "")
        row: Scheduler | None = self.get_object(request, key) if key else None
        return row if row is not None and self.has_view_or_change_permission(request, row) else None

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """The other one's values; its secrets are not among what is shown."""
        source = self.source_of(request)
        if source is None:
            return super().get_changeform_initial_data(request)
        limit = Scheduler._meta.get_field("description").max_length
        values = model_to_dict(source)
        values |= {
            "description": (_("%(name)s (copy)") % {"name": source.description or source})[:limit],
            "date_time": wall(source),
            "status": False,
            "pause_reason": "",
        }
        return values

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> type[ModelForm]:
        """The form knows the other one also when it is posted: a secret that was left alone comes from there."""
        form = super().get_form(request, obj, change=change, **kwargs)
        if issubclass(form, SchedulerForm):
            form.source = None if change else self.source_of(request)
        return form
