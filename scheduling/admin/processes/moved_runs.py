"""The page "Moved runs": the next runs that new zone data (tzdata) has moved."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduling.admin.common.read_only import ReadOnly
from scheduling.admin.ui.links import link, scheduler_url
from scheduling.admin.ui.times import time_tag
from scheduling.core.text import visible_text
from scheduling.models import MovedRun
from scheduling.models.visibility import visibility_of
from scheduling.operations import schedules
from scheduling.operations.schedule_words import zone_named
from scheduling.operations.times import format_minute


@admin.register(MovedRun)
class MovedRunAdmin(ReadOnly):
    """The list of moved runs, for users who may view schedules."""

    list_display = ("moved", "schedule_column", "before", "after", "data")
    list_display_links = None
    fields = readonly_fields = list_display
    sortable_by = ()
    no_rows = gettext_lazy("If new zone data (tzdata) moves the next run of a schedule, it is listed here.")

    def get_queryset(self, request: HttpRequest) -> QuerySet[MovedRun]:
        visible = visibility_of(request.user)
        rows = visible.only(super().get_queryset(request)).select_related("zone_data").defer("zone_data__offsets")
        return visible.with_schedules(rows)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return any(request.user.has_perm(name) for name in schedules.VIEW)

    @admin.display(description=gettext_lazy("Moved"))
    def moved(self, row: MovedRun) -> str:
        return time_tag(row.moved_at)

    @admin.display(description=gettext_lazy("Schedule"))
    def schedule_column(self, row: MovedRun) -> str:
        if row.scheduler is None:
            return _("deleted, or of another group")
        return link(scheduler_url(row.scheduler.pk), visible_text(row.scheduler, 120))

    @admin.display(description=gettext_lazy("Planned before"))
    def before(self, row: MovedRun) -> str:
        return format_minute(row.old_at, zone_named(row.timezone))

    @admin.display(description=gettext_lazy("Planned now"))
    def after(self, row: MovedRun) -> str:
        return format_minute(row.new_at, zone_named(row.timezone))

    @admin.display(description=gettext_lazy("Zone data"))
    def data(self, row: MovedRun) -> str:
        return visible_text(row.zone_data, 40)
