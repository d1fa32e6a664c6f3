"""Workers: registered functions as operators choose them."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from scheduling.admin.legible import column
from scheduling.admin.scheduler_form import DatalistInput
from scheduling.admin.targets import TargetAdmin, TargetForm
from scheduling.models import Worker
from scheduling.registry import handlers


class WorkerForm(TargetForm):
    """Suggests the names that are registered."""

    type_ = "worker"

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        if "name" in self.fields:
            self.fields["name"].widget = DatalistInput([each.name for each in handlers("worker")])


@admin.register(Worker)
class WorkerAdmin(TargetAdmin):
    """Rows are made by themselves after `migrate`; what operators change here stays."""

    type_ = "worker"
    form = WorkerForm
    list_display = (column(Worker, "name"), column(Worker, "title"), "code_chip", "summary")
    search_fields = ("name", "title", "description")
    readonly_fields = ("code_panel",)
    fieldsets = (
        (None, {"fields": ("name", "title", "description", "code_panel")}),
        (_("Defaults"), {"fields": ("params",)}),
    )
