"""The page of a schedule: its state, next runs, last runs and parameters. Its form is a page of its own, `edit`."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.options import IS_POPUP_VAR, TO_FIELD_VAR
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone as clock
from django.utils.html import format_html
from django.utils.translation import gettext as _

from scheduling.admin.alerts.standing import alerts_context
from scheduling.admin.breakers.context import breaker_context
from scheduling.admin.common.audited import Audited
from scheduling.admin.common.batch_note import batch_context
from scheduling.admin.common.pages import READ, Page
from scheduling.admin.common.viewer import Viewer
from scheduling.admin.limits.context import limit_context
from scheduling.admin.pauses.context import pause_context
from scheduling.admin.schedulers.after_fields import after_facts
from scheduling.admin.schedulers.bounds_words import bounds_in_words
from scheduling.admin.schedulers.columns import SchedulerColumns
from scheduling.admin.schedulers.duplicate import ARGUMENT
from scheduling.admin.schedulers.excluded_panel import excluded_panel
from scheduling.admin.schedulers.from_code import from_code
from scheduling.admin.schedulers.next_runs_panel import next_runs_panel
from scheduling.admin.schedulers.recent_runs import recent_runs
from scheduling.admin.schedulers.retention_panel import retention_panel
from scheduling.admin.schedulers.retry_panel import retry_panel
from scheduling.admin.schedulers.timing_words import timing_words
from scheduling.admin.schedulers.why_at import panel
from scheduling.admin.ui.badges import health_badge
from scheduling.admin.ui.links import admin_url, scheduler_url
from scheduling.admin.ui.targets import linked_target
from scheduling.admin.ui.times import EMPTY, format_duration, time_with_relative
from scheduling.core.known_sentences import for_reader
from scheduling.core.text import visible_text
from scheduling.handlers.permission import refusal
from scheduling.handlers.queues import QueueInvalid, work_queue_of
from scheduling.models import Scheduler
from scheduling.models.health import health_of, last_results, with_health
from scheduling.operations.overdue import overdue
from scheduling.pings import address as ping_address


class Overview(SchedulerColumns, Audited):
    """The page that all links to a schedule lead to, and the address of the form."""

    pages: tuple[Page, ...] = (Page("edit", "edit", "<path:object_id>/edit/"),)

    def has_edit_permission(self, request: HttpRequest) -> bool:
        """Each user who sees the schedule may read the form. A POST is refused before the schedule is looked up."""
        return request.method in READ or self.has_change_permission(request)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Shows the overview. A POST and a window that another page has opened get the form."""
        opened = IS_POPUP_VAR in request.GET or TO_FIELD_VAR in request.GET
        if request.method not in ("GET", "HEAD") or opened:
            return self._form(request, object_id, form_url, extra_context)
        return self.with_row(request, object_id, self._overview)

    def edit_view(self, request: HttpRequest, row: Scheduler) -> HttpResponse:
        """The form. Users who may not change the schedule see its values."""
        return self._form(request, str(row.pk))

    def _form(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return super().change_view(request, object_id, form_url, {"tab": "edit", **(extra_context or {})})

    def response_post_save_add(self, request: HttpRequest, obj: Any) -> HttpResponseRedirect:
        """After a save, the overview shows the next runs and the button "Run now"."""
        return HttpResponseRedirect(scheduler_url(obj.pk))

    response_post_save_change = response_post_save_add

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: Any = None) -> HttpResponse:
        return super().response_add(request, obj, post_url_continue or admin_url("scheduling_scheduler_edit", obj.pk))

    def tabs(self, request: HttpRequest, row: Scheduler) -> dict[str, Any]:
        """The template context that the overview and the form share."""
        return {
            "from_code": from_code(row),
            "may_change": self.has_change_permission(request, row),
            "may_view_executions": request.user.has_perm("scheduling.view_schedulerexecution"),
        }

    def _overview(self, request: HttpRequest, row: Scheduler) -> HttpResponse:
        now, viewer = clock.now(), Viewer.of(request)
        row.last_execution = last_results([row.pk], viewer.visible).get(row.pk)  # type: ignore[attr-defined]
        ranked = with_health(Scheduler.objects.filter(pk=row.pk).only("pk"), now).first()
        name, refused = visible_text(row, 120), refusal(request.user, row)
        return self.page_response(
            request,
            "admin/scheduling/scheduler/overview.html",
            media=self.media,
            title=name,
            original=row,
            tab="overview",
            health=health_badge(health_of(ranked)) if ranked is not None else "",
            plan_error=for_reader(row.plan_error, 500),
            overdue=overdue(row, now),
            standing=self.standing(row),
            next_runs=next_runs_panel(row, now),
            excluded=excluded_panel(row, now, row.calendar is None or viewer.visible.shows(row.calendar)),
            recent=recent_runs(row, viewer),
            why_at=panel(row, viewer.visible) if viewer.sees("schedulerexecution") else None,
            params=self.params_shown(row),
            retry=retry_panel(row),
            retention=retention_panel(row, request),
            facts=self._facts(request, row),
            refusal=refused,
            may_run=not refused and self.has_run_permission(request),  # type: ignore[attr-defined]
            may_backfill=not refused and self._may_backfill(request, row),
            may_pause=not refused and self.has_pause_permission(request),  # type: ignore[attr-defined]
            may_add=not refused and self.has_add_permission(request),
            may_delete=self.has_delete_permission(request, row),
            copy_argument=ARGUMENT,
            **self._pause(row, viewer),
            **alerts_context(viewer, schedule=row.pk),
            **self.tabs(request, row),
        )

    def _may_backfill(self, request: HttpRequest, row: Scheduler) -> bool:
        """A service and a schedule with one date have no range of instants."""
        may: bool = self.has_backfill_permission(request)  # type: ignore[attr-defined]
        return may and not row.stay_alive and row.date_time is None

    @staticmethod
    def _pause(row: Scheduler, viewer: Viewer) -> dict[str, Any]:
        """The pause, the circuit breaker and the limit for which the runs of the schedule wait."""
        name = getattr(row.target, "handler_name", "")
        try:
            queue = work_queue_of(row.target_type, name, row.queue, row.priority, service=row.stay_alive)
        except QueueInvalid:
            queue = ""  # the page says that it cannot be planned
        found = pause_context(row.target_type, name, queue, viewer)
        found |= breaker_context(row.target_type, name, viewer) | limit_context(row.target_type, name, viewer)
        return found | batch_context(row.target_type, name)

    @staticmethod
    def _calendar(request: HttpRequest, row: Scheduler) -> list[tuple[str, Any]]:
        """The name of the calendar, with a link to its page for users who may open it."""
        if row.calendar is None:
            return []
        viewer = Viewer.of(request)
        if not viewer.visible.shows(row.calendar):
            return [(_("Calendar"), _("a calendar of another group"))]
        name = visible_text(row.calendar, 100)
        page = admin_url("scheduling_calendar_change", row.calendar.pk)
        link = format_html('<a href="{}">{}</a>', page, name) if viewer.sees("calendar") else name
        return [(_("Calendar"), link)]

    def _facts(self, request: HttpRequest, row: Scheduler) -> list[tuple[str, Any]]:
        """What the form says about the schedule beside its times and parameters."""
        target = row.target
        found: list[tuple[str, Any]] = [
            (
                _("Target"),
                linked_target(target, target.pk, visible_text(target, 120), request.user) if target else EMPTY,
            )
        ]
        if row.stay_alive:
            found.append((_("Service"), _("started again whenever it ends")))
        elif row.runs_alone:
            found.append((_("Overlap"), row.get_overlap_display()))
        found += [*self._calendar(request, row), *timing_words(row)]
        found += bounds_in_words(row)
        found += after_facts(row, Viewer.of(request))
        if row.time_limit is not None:
            limit = format_duration(row.time_limit) if row.time_limit else _("none")
            found.append((_("Time limit"), limit))
        if row.ping_url:
            found.append((_("Ping URL"), visible_text(ping_address.shown(row.ping_url), 120)))
        if row.language:
            found.append((_("Language"), visible_text(row.language)))
        if row.user is not None:
            found.append((_("User"), visible_text(row.user, 150)))
        if row.group is not None:
            found.append((_("Group"), visible_text(row.group, 150)))
        now = clock.now()
        found.append((_("Added"), time_with_relative(row.created_at, now)))
        found.append((_("Changed"), time_with_relative(row.updated_at, now)))
        return found
