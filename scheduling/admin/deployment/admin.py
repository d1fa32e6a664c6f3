"""The page of the deployment. If the database was copied or restored, a person confirms it here."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern
from django.utils import timezone as clock
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduling.admin.common.confirm import Confirmation
from scheduling.admin.common.pages import Page
from scheduling.admin.common.read_only import ReadOnly
from scheduling.admin.ui.links import admin_url, list_url
from scheduling.admin.ui.times import EMPTY, time_with_relative
from scheduling.core.known_sentences import for_reader
from scheduling.core.text import visible_text
from scheduling.execution.confirm import RUN_WAITING, SET_WAITING_ASIDE, Outlook, confirm, outlook
from scheduling.models import Deployment, Scheduler
from scheduling.models.labels import STATES
from scheduling.models.plan import FIRST_INSTANT
from scheduling.operations.audit import record
from scheduling.operations.catch_up import caught_up
from scheduling.processes.deployment_row import row_now
from scheduling.processes.own_identity import own_identity

COUNTED_SCHEDULES = 200
"""Of at most so many schedules it is computed what they would catch up."""


class WaitingForm(forms.Form):
    """Asks what happens to what waits."""

    waiting = forms.ChoiceField(
        label=gettext_lazy("What waits"),
        choices=[
            (SET_WAITING_ASIDE, gettext_lazy("Set aside: it goes to the failed inbox, and what fell due is skipped")),
            (RUN_WAITING, gettext_lazy("Run: it runs, and what fell due is caught up")),
        ],
        widget=forms.RadioSelect,
        initial=SET_WAITING_ASIDE,
        help_text=gettext_lazy("What is known to have run before a restore is not run again in either case."),
    )


@admin.register(Deployment)
class DeploymentAdmin(ReadOnly):
    """One page, for the one row."""

    pages = (Page("changelist", "view", ""),)

    def get_urls(self) -> list[URLPattern]:
        """The URL of the page only."""
        return self.page_urls()

    def has_confirm_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("scheduling.confirm_deployment")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """GET shows whose database it is and what a confirmation would do; POST confirms."""
        now = clock.now()
        found = outlook(now)
        form = WaitingForm(request.POST if request.method == "POST" else None)
        if request.method == "POST":
            if not self.has_confirm_permission(request):
                raise PermissionDenied
            if found is not None and form.is_valid():
                return self._confirm(request, found, run_waiting=form.cleaned_data["waiting"] == RUN_WAITING)
        if found is None:
            return _settled().response(request, self)
        return _asked(found, form, may=self.has_confirm_permission(request)).response(request, self)

    def _confirm(self, request: HttpRequest, found: Outlook, *, run_waiting: bool) -> HttpResponse:
        done = confirm(clock.now(), request.user.get_username(), run_waiting=run_waiting)
        if done is not None:
            record(request, Deployment.objects.all(), done.recorded(found.hold))
            text = _("The database is confirmed. Skipped schedules: %(skipped)s. Set aside: %(aside)s.")
            numbers = {"skipped": done.skipped, "aside": done.set_aside}
            self.message_user(request, text % numbers, messages.SUCCESS)
        return HttpResponseRedirect(admin_url("scheduling_deployment_changelist"))


def _caught_up(due: int) -> list[tuple[str, str]]:
    """What “run what waits” would catch up."""
    if not due or due > COUNTED_SCHEDULES:
        return []
    now = clock.now()
    rows = Scheduler.objects.filter(next_run_at__gte=FIRST_INSTANT, next_run_at__lte=now, status=True)
    found = caught_up(rows[:COUNTED_SCHEDULES], now)
    said = _("Run: %(runs)s. Recorded as skipped: %(skipped)s.") % {"runs": found.runs, "skipped": found.skipped}
    return [(_("Their runs, if what fell due is caught up"), said)]


def _settled() -> Confirmation:
    row = row_now()
    facts = [(_("Deployment"), visible_text(own_identity(), 200))]
    if row is not None:
        facts.append((_("Last sign of work"), time_with_relative(row.beat_at)))
        facts.append((_("Confirmed"), time_with_relative(row.confirmed_at)))
        facts.append((_("Confirmed by"), visible_text(row.confirmed_by, 150) or EMPTY))
    return Confirmation(
        title=_("Deployment"), lead=_("The database belongs to this deployment. There is nothing to confirm."),
        submit="", back=admin_url("index"), facts=facts, blocked=True,
    )  # fmt: skip


def _asked(found: Outlook, form: WaitingForm, *, may: bool) -> Confirmation:
    counts = [
        (list_url("schedulerexecution", state=state), STATES.get(state, state), count)
        for state, count in sorted(found.states.items())
    ]
    states = format_html_join(", ", '<a href="{}">{} {}</a>', counts)
    due = format_html('<a href="{}">{}</a>', list_url("scheduler", health="late"), found.due)
    facts = [
        (_("This deployment"), visible_text(found.own, 200)),
        (_("Last sign of work in the database"), time_with_relative(found.beat_at)),
        (_("Executions that wait or run"), format_html("{} ({})", found.waiting, states) if states else found.waiting),
        (_("Schedules that have fallen due"), due if found.due else found.due),
        *_caught_up(found.due),
    ]
    if found.known_until is not None:
        facts.append((_("Runs were started until"), time_with_relative(found.known_until)))
        facts.append((_("Schedules that fell due by then, and have run"), found.due_before))
    warnings = []
    if found.alive:
        text = _(
            "Processes that work with this database now: %(count)s. If it is theirs, correct the settings here "
            "instead: after a confirmation they hold."
        )
        warnings.append(text % {"count": len(found.alive)})
    if not may:
        warnings.append(_("You lack the permission to confirm. Ask an operator."))
    return Confirmation(
        title=_("Confirm the database"),
        lead=_("Nothing is claimed, started or published. %(reason)s") % {"reason": for_reader(found.hold.said, 500)},
        submit=_("Confirm: work with this database"), back=admin_url("index"), facts=facts, warnings=warnings,
        form=form, danger=True, blocked=not may,
    )  # fmt: skip
