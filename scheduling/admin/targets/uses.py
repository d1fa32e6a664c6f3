"""The schedules and the last runs of a target, below its form."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from scheduling.admin.breakers.context import breaker_context
from scheduling.admin.common.batch_note import batch_context
from scheduling.admin.common.viewer import Viewer
from scheduling.admin.limits.context import limit_context
from scheduling.admin.pauses.context import pause_context
from scheduling.admin.stats.run_bars import bars
from scheduling.admin.targets.run_once import RunOnce
from scheduling.admin.ui.badges import health_badge, state_badge
from scheduling.admin.ui.links import admin_url, list_url
from scheduling.admin.ui.media import page_media
from scheduling.admin.ui.schedules import zone_of
from scheduling.admin.ui.times import EMPTY, due_words, format_duration, time_with_relative
from scheduling.core.targets import TARGETS
from scheduling.core.text import visible_text
from scheduling.handlers.permission import lacked
from scheduling.models import Scheduler
from scheduling.models.health import health_in_bulk, health_of, may_sort, most_urgent
from scheduling.models.last_runs import last_runs
from scheduling.models.visibility import visibility_of

LISTED = 10
"""At most this many schedules and runs are listed."""


class Uses(RunOnce):
    """Adds what uses the target to its page, and the button "Run once"."""

    change_form_template = "admin/scheduling/targets/change_form.html"

    @property
    def media(self) -> forms.Media:
        return super().media + page_media(sheets=("dashboard", "scheduler"))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> tuple[Any, Any, Any, Any]:
        """What a deletion removes and what forbids it. The schedules that the user does not see are not named."""
        deleted, counts, lacking, protected = super().get_deleted_objects(objs, request)
        visible = visibility_of(request.user)
        if protected and visible.is_limited:
            type_ = str(self.opts.model_name)
            rows = visible.schedules().filter(**{f"{type_}__in": [row.pk for row in objs]})
            protected = [
                _("%(kind)s: %(name)s")
                % {"kind": capfirst(Scheduler._meta.verbose_name), "name": visible_text(row, 120)}
                for row in rows.prefetch_related(*TARGETS)
            ] or [_("schedules that you may not see")]
        return deleted, counts, lacking, protected

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        if (row := context.get("original")) is not None and not context.get("is_popup"):
            viewer = Viewer.of(request)
            context["uses"] = uses(str(row._meta.model_name), row, viewer)
            type_ = str(row._meta.model_name)
            context |= pause_context(type_, row.handler_name, "", viewer)
            context |= breaker_context(type_, row.handler_name, viewer)
            context |= limit_context(type_, row.handler_name, viewer)
            context |= batch_context(type_, row.handler_name)
        return super().render_change_form(request, context, *args, **kwargs)


def uses(type_: str, target: models.Model, viewer: Viewer) -> dict[str, Any]:
    """The template context: the schedules of the target, the most urgent first, and their last runs.

    The runs come from the listed schedules only, because no index leads from a target to its executions.
    """
    if not viewer.sees("scheduler"):
        return {}
    visible = viewer.visible
    rows = visible.schedules().filter(**{type_: target.pk})
    keys = most_urgent(rows, viewer.now, may_sort(visible))[: LISTED + 1]
    found = health_in_bulk(keys, viewer.now)
    listed = found[:LISTED]
    sees_runs = viewer.sees("schedulerexecution")
    runs = last_runs([row.pk for row in listed], visible) if sees_runs else {}
    newest = sorted((run for group in runs.values() for run in group), key=lambda run: -run.pk)[:LISTED]
    names = {row.pk: row for row in listed}
    add = admin_url("scheduling_scheduler_add")
    may_add = viewer.may("add_scheduler") and lacked(viewer.user, target) is None
    return {
        "schedules": [
            {
                "name": visible_text(row, 80),
                "address": viewer.scheduler(row.pk),
                "health": health_badge(health_of(row)),
                "bars": bars(runs[row.pk], viewer, zone_of(row)) if runs.get(row.pk) else "",
                "next": EMPTY if row.next_run_at is None else due_words(row.next_run_at, viewer.now),
            }
            for row in listed
        ],
        "runs": [
            {
                "address": viewer.execution(run.pk),
                "chip": state_badge(run.state),
                "schedule": visible_text(names[run.scheduler_id], 80),
                "at": time_with_relative(run.scheduled_at, viewer.now, zone_of(names[run.scheduler_id])),
                "took": EMPTY if run.seconds is None else format_duration(run.seconds),
            }
            for run in newest
        ],
        "more": len(found) > LISTED,
        "all": list_url("scheduler", **{f"{type_}__id__exact": target.pk}),
        "add": f"{add}?{urlencode({type_: target.pk})}" if may_add else "",
        "sees_runs": sees_runs,
    }
