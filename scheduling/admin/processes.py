"""Processes: the producers and consumers that are, or were, at work."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone as clock
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from scheduling.admin.filters import ColumnFilter
from scheduling.admin.parts import MEDIA, ago, json_block, process_chip, shown, when
from scheduling.admin.readonly import ReadOnly
from scheduling.models import Process
from scheduling.reconcile import SILENT_AFTER


class KindFilter(ColumnFilter):
    """Producers or consumers."""

    title, parameter_name = _("kind"), "kind"
    values = tuple((kind.value, kind.label) for kind in Process.Kind)


class PresenceFilter(admin.SimpleListFilter):
    """Alive, silent or stopped."""

    title, parameter_name = _("presence"), "presence"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, Any]]:
        """The three."""
        return [("alive", _("alive")), ("silent", _("silent")), ("stopped", _("stopped"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """By stop and heartbeat, as the chip has it."""
        edge = clock.now() - SILENT_AFTER
        match self.value():
            case "alive":
                return queryset.filter(stopped_at__isnull=True, heartbeat_at__gte=edge)
            case "silent":
                return queryset.filter(stopped_at__isnull=True, heartbeat_at__lt=edge)
            case "stopped":
                return queryset.filter(stopped_at__isnull=False)
        return queryset


@admin.register(Process)
class ProcessAdmin(ReadOnly):
    """Written by the processes themselves."""

    list_display = ("name", "presence", "kind", "concurrency", "doing", "started")
    list_filter = (PresenceFilter, KindFilter)
    search_fields = ("container_id", "host")
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    ordering = ("-id",)
    fields = ("container_id", "presence", "kind", "host", "pid", "concurrency", "started", "beat", "stopped", "state")
    readonly_fields = ("presence", "started", "beat", "stopped", "state")

    @property
    def media(self) -> Any:
        """The stock scripts and our style sheet."""
        return super().media + MEDIA

    @admin.display(description=_("Process"))
    def name(self, row: Process) -> str:
        """Who it is, and where."""
        place = _("%(host)s, process %(pid)d") % {"host": shown(row.host, 60), "pid": row.pid}
        return format_html('{}<span class="sch-quiet sch-below">{}</span>', shown(row.container_id), place)

    @admin.display(description=_("Presence"))
    def presence(self, row: Process) -> str:
        """As a chip, with the heartbeat's age."""
        chip, age = process_chip(row, clock.now()), ago(row.heartbeat_at)
        return format_html('{}<span class="sch-quiet sch-below">{} {}</span>', chip, _("Heartbeat:"), age)

    @admin.display(description=_("Doing"))
    def doing(self, row: Process) -> str:
        """What it said with its last heartbeat."""
        info = row.info if isinstance(row.info, dict) else {}
        return shown(", ".join(f"{name} {value}" for name, value in sorted(info.items()) if value is not None), 120)

    @admin.display(description=_("Started"), ordering="started_at")
    def started(self, row: Process) -> str:
        """When."""
        return when(row.started_at)

    @admin.display(description=_("Last heartbeat"))
    def beat(self, row: Process) -> str:
        """When."""
        return when(row.heartbeat_at)

    @admin.display(description=_("Stopped"))
    def stopped(self, row: Process) -> str:
        """When, if it said so."""
        return when(row.stopped_at)

    @admin.display(description=_("State"))
    def state(self, row: Process) -> str:
        """All that it said."""
        return json_block(row.info)
