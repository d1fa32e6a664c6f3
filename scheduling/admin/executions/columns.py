"""The columns of the list of executions."""

from __future__ import annotations

from django.contrib import admin
from django.utils.html import format_html
from django.utils.translation import gettext_lazy, ngettext

from scheduling.admin.executions.duration import TOOK, slow_mark
from scheduling.admin.executions.lookup import trigger_words
from scheduling.admin.ui.badges import state_badge
from scheduling.admin.ui.links import execution_url, scheduler_url
from scheduling.admin.ui.schedules import zone_of
from scheduling.admin.ui.targets import execution_target
from scheduling.admin.ui.times import EMPTY, time_tag, time_with_relative
from scheduling.core.known_sentences import for_reader
from scheduling.core.lifecycle import State
from scheduling.core.text import visible_text
from scheduling.models import SchedulerExecution


def _files(row: SchedulerExecution) -> str:
    """How many files the run has made, as a link to them; empty if it has made none."""
    if not (number := getattr(row, "files", 0)):
        return ""
    words = ngettext("%(count)d file", "%(count)d files", number) % {"count": number}
    return format_html('<a class="sch-below" href="{}#files">{}</a>', execution_url(row.pk), words)


class ExecutionColumns(admin.ModelAdmin):
    list_display = (
        "id", "state_column", "target_column", "scheduled_column", "started_column", "attempt",
        "trigger_column",
    )  # fmt: skip
    list_display_links = ("id",)
    sortable_by = ("id", "started_column")

    @admin.display(description=gettext_lazy("State"))
    def state_column(self, row: SchedulerExecution) -> str:
        if row.state != State.BLOCKED.value:
            return state_badge(row.state)
        return format_html('{}<span class="sch-below">{}</span>', state_badge(row.state), for_reader(row.reason, 160))

    @admin.display(description=gettext_lazy("Target and schedule"))
    def target_column(self, row: SchedulerExecution) -> str:
        name = execution_target(row)
        if row.scheduler is None:
            return name
        address = scheduler_url(row.scheduler_id)
        return format_html('{}<a class="sch-below" href="{}">{}</a>', name, address, visible_text(row.scheduler, 60))

    @admin.display(description=gettext_lazy("Scheduled"))
    def scheduled_column(self, row: SchedulerExecution) -> str:
        return time_with_relative(row.scheduled_at, getattr(row, "looked_at", None), zone_of(row.scheduler))

    @admin.display(description=gettext_lazy("Started, took"), ordering=TOOK)
    def started_column(self, row: SchedulerExecution) -> str:
        """The start of the last attempt, how long it took so far, whether this is slower than usual, and its files."""
        if row.started_at is None:
            return EMPTY
        return format_html(
            '{}<span class="sch-below">{}</span>{}{}',
            time_tag(row.started_at, zone_of(row.scheduler)),
            getattr(row, "took", EMPTY),
            slow_mark(getattr(row, "slow", "")),
            _files(row),
        )

    @admin.display(description=gettext_lazy("Trigger and key"))
    def trigger_column(self, row: SchedulerExecution) -> str:
        key = visible_text(row.execution_key)
        return format_html('{}<code class="sch-below sch-key">{}</code>', trigger_words(row, 40), key)
