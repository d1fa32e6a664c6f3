"""Processes: the producers and consumers that run now or ran before."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import F
from django.http import HttpRequest
from django.utils import timezone as clock
from django.utils.html import format_html, format_html_join
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy as _

from scheduling.admin.common.filters import ChoiceFilter, ColumnFilter
from scheduling.admin.common.read_only import ReadOnly
from scheduling.admin.params.json_field import json_block
from scheduling.admin.processes.doing import doing
from scheduling.admin.processes.handlers import handlers
from scheduling.admin.ui.badges import process_badge
from scheduling.admin.ui.times import EMPTY, relative_time_tag, time_with_relative
from scheduling.core.text import visible_text
from scheduling.models import Process
from scheduling.monitoring.findings.old_code import old_code_words


class PresenceFilter(ColumnFilter):
    """Filters processes by their presence: alive, silent or stopped."""

    title, parameter_name = _("status"), "presence"
    values = (("alive", _("alive")), ("silent", _("silent")), ("stopped", _("stopped")))

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        now, stopped = clock.now(), queryset.filter(stopped_at__isnull=False)
        found = {"alive": queryset.alive(now), "silent": queryset.silent(now), "stopped": stopped}
        return found.get(self.value() or "", queryset)


@admin.register(Process)
class ProcessAdmin(ReadOnly):
    """The pages are read-only, because the processes write their rows themselves."""

    list_display = ("name", "presence", "kind", "doing", "started")
    list_filter = (PresenceFilter, ("kind", ChoiceFilter))
    search_fields = ("container_id", "host")
    list_per_page = 100
    # The living first. A table of processes is small, because the retention removes old ones.
    ordering = (F("stopped_at").desc(nulls_first=True), "-id")  # type: ignore[assignment]  # the base has one name
    readonly_fields = ("presence", "doing", "code", "handlers", "started", "beat", "stopped", "state")
    no_rows = _("A process is one start of run_scheduler or run_worker. None is on record yet: start both commands.")

    def get_fields(self, request: HttpRequest, obj: Process | None = None) -> tuple[str, ...]:
        """The row's facts. A producer has no slots, so its concurrency is left out."""
        slots = () if obj is not None and obj.kind == Process.Kind.PRODUCER else ("concurrency",)
        times = ("code", "handlers", "started", "beat", "stopped", "state")
        return ("container_id", "presence", "kind", "doing", "host", "pid", *slots, *times)

    @admin.display(description=_("Process"))
    def name(self, row: Process) -> str:
        place = _("%(host)s, process %(pid)d") % {"host": visible_text(row.host, 60), "pid": row.pid}
        return format_html('{}<span class="sch-quiet sch-below">{}</span>', visible_text(row.container_id), place)

    @admin.display(description=_("Status"))
    def presence(self, row: Process) -> str:
        """Whether the process is alive, and whether it runs old code."""
        now = clock.now()
        old = old_code_words(row, now) if row.stopped_at is None else ""
        return format_html(
            '{}<span class="sch-quiet sch-below">{} {}</span>{}',
            process_badge(row, now),
            _("Heartbeat:"),
            relative_time_tag(row.heartbeat_at),
            format_html('<span class="sch-warn-text sch-below">{}</span>', old) if old else "",
        )

    @admin.display(description=_("Activity"))
    def doing(self, row: Process) -> str:
        """What the last heartbeat reported. A stopped process does nothing any more."""
        return doing(row, clock.now()) or EMPTY

    @admin.display(description=_("Code last changed"))
    def code(self, row: Process) -> str:
        """The time of the newest change in the loaded files. `presence` says whether a file has changed since."""
        return time_with_relative(row.code_at)

    @admin.display(description=_("Handlers"))
    def handlers(self, row: Process) -> str:
        """How many handlers the process knows, and how they differ from those of the alive processes beside it."""
        return format_html_join(mark_safe("<br>"), "{}", ((line,) for line in handlers(row, clock.now()))) or EMPTY

    @admin.display(description=_("Started"), ordering="started_at")
    def started(self, row: Process) -> str:
        return time_with_relative(row.started_at)

    @admin.display(description=_("Last heartbeat"))
    def beat(self, row: Process) -> str:
        return time_with_relative(row.heartbeat_at)

    @admin.display(description=_("Stopped"))
    def stopped(self, row: Process) -> str:
        return time_with_relative(row.stopped_at)

    @admin.display(description=_("Details"))
    def state(self, row: Process) -> str:
        return json_block(row.info)
