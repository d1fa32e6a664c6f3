"""Processes: the producers and consumers that run now or ran before."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils import timezone as clock
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from scheduling.admin.common.filters import ChoiceFilter, ColumnFilter
from scheduling.admin.common.read_only import ReadOnly
from scheduling.admin.params.json_field import json_block
from scheduling.admin.ui.badges import process_badge
from scheduling.admin.ui.times import relative_time_tag, time_with_relative
from scheduling.core.text import visible_text
from scheduling.models import Process


class PresenceFilter(ColumnFilter):
    """Filters processes by their presence: alive, silent or stopped."""

    title, parameter_name = _("presence"), "presence"
    values = (("alive", _("alive")), ("silent", _("silent")), ("stopped", _("stopped")))

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        now, stopped = clock.now(), queryset.filter(stopped_at__isnull=False)
        found = {"alive": queryset.alive(now), "silent": queryset.silent(now), "stopped": stopped}
        return found.get(self.value() or "", queryset)


@admin.register(Process)
class ProcessAdmin(ReadOnly):
    """The pages are read-only, because the processes write their rows themselves."""

    list_display = ("name", "presence", "kind", "concurrency", "doing", "started")
    list_filter = (PresenceFilter, ("kind", ChoiceFilter))
    search_fields = ("container_id", "host")
    list_per_page = 100
    fields = ("container_id", "presence", "kind", "host", "pid", "concurrency", "started", "beat", "stopped", "state")
    readonly_fields = ("presence", "started", "beat", "stopped", "state")

    @admin.display(description=_("Process"))
    def name(self, row: Process) -> str:
        place = _("%(host)s, process %(pid)d") % {"host": visible_text(row.host, 60), "pid": row.pid}
        return format_html('{}<span class="sch-quiet sch-below">{}</span>', visible_text(row.container_id), place)

    @admin.display(description=_("Presence"))
    def presence(self, row: Process) -> str:
        chip, age = process_badge(row, clock.now()), relative_time_tag(row.heartbeat_at)
        return format_html('{}<span class="sch-quiet sch-below">{} {}</span>', chip, _("Heartbeat:"), age)

    @admin.display(description=_("Doing"))
    def doing(self, row: Process) -> str:
        """The values that the last heartbeat reported, on one line."""
        info = row.info if isinstance(row.info, dict) else {}
        said = ", ".join(f"{name} {value}" for name, value in sorted(info.items()) if value is not None)
        return visible_text(said, 120)

    @admin.display(description=_("Started"), ordering="started_at")
    def started(self, row: Process) -> str:
        return time_with_relative(row.started_at)

    @admin.display(description=_("Last heartbeat"))
    def beat(self, row: Process) -> str:
        return time_with_relative(row.heartbeat_at)

    @admin.display(description=_("Stopped"))
    def stopped(self, row: Process) -> str:
        return time_with_relative(row.stopped_at)

    @admin.display(description=_("State"))
    def state(self, row: Process) -> str:
        return json_block(row.info)
