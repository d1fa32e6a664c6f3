"""Run now: a button on a schedule's page, and an action on the list. An operator must confirm each run."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from scheduling.admin.common.batches import allowed_only
from scheduling.admin.common.broker import open_broker
from scheduling.admin.common.confirm import SAMPLES, Confirmation, action_fields, key_of, new_key
from scheduling.admin.common.pages import Page, Pages
from scheduling.admin.params.form import ParamsForm
from scheduling.admin.params.inputs import NAME
from scheduling.admin.schedulers.chosen_params import params_problem
from scheduling.admin.ui.links import execution_link, execution_url, scheduler_url
from scheduling.admin.ui.times import EMPTY
from scheduling.broker import BrokerError
from scheduling.core.known_sentences import in_language
from scheduling.core.lifecycle import State
from scheduling.core.occurrences import manual_key
from scheduling.core.targets import TARGETS
from scheduling.core.text import visible_text
from scheduling.execution.run_now import overlap_now, run_now
from scheduling.handlers.permission import refused_schedules
from scheduling.handlers.targets import handler_of
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.labels import TYPES
from scheduling.operations.audit import params_edits, record

LINKS = 5
BESIDE = "beside"


class BesideForm(forms.Form):
    """Asks whether to obey the overlap policy of the schedule."""

    beside = forms.BooleanField(
        required=False,
        label=gettext_lazy("Start it beside the run that is not over"),
        help_text=gettext_lazy("Whatever the overlap of the schedule says, for this run only."),
    )


class RunNow(Pages):
    """The page "Run now" of a schedule, and the action "Run selected schedules now" of the list."""

    pages: tuple[Page, ...] = (Page("run", "run"),)
    schedules_per_request = 500
    """The maximum number of schedules in one request. With more schedules, the page would take too long."""

    def has_run_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("scheduling.run_scheduler")

    def run_view(self, request: HttpRequest, scheduler: Scheduler) -> HttpResponse:
        """GET asks for confirmation. POST runs the schedule."""
        back = scheduler_url(scheduler.pk)
        # The dashboard's button sends no parameters. The run then gets the schedule's own parameters.
        data = request.POST if NAME in request.POST else None
        inherited = getattr(scheduler.target, "params", {})
        form = ParamsForm(handler_of(scheduler), scheduler.params, inherited=inherited, data=data)
        blocked = scheduler.target is None or not isinstance(getattr(scheduler.target, "params", {}), dict)
        found = params_problem(scheduler, stored=True) if blocked or not form.bound else ""
        if request.method == "POST" and not blocked and (form.is_valid() if form.bound else not found):
            params = form.params if form.bound else scheduler.params
            done = self._run(request, [scheduler], params, beside=BESIDE in request.POST)
            if done and request.user.has_perm("scheduling.view_schedulerexecution"):
                back = execution_url(done[0].pk)
            return HttpResponseRedirect(back)
        return self._ask_run(request, scheduler, form, found, blocked)

    def _ask_run(
        self, request: HttpRequest, scheduler: Scheduler, form: ParamsForm, problem: str, blocked: bool
    ) -> HttpResponse:
        back = scheduler_url(scheduler.pk)
        lead = _("“%(name)s” will run once, now. The schedule is not changed.") % {"name": visible_text(scheduler, 120)}
        return Confirmation(
            title=_("Run now"),
            lead=lead,
            submit=_("Run now"),
            back=back,
            error=_("Please correct the error below.") if form.errors else "",
            warnings=_warnings(scheduler, problem),
            facts=[
                (_("Target"), visible_text(scheduler.target, 120)),
                (_("Type"), TYPES.get(scheduler.target_type, EMPTY)),
            ],
            hidden=[("key", key_of(request) if form.bound else new_key())],
            form=BesideForm() if overlap_now(scheduler.pk) and not scheduler.stay_alive else None,
            params=form,
            blocked=blocked,
            crumbs=[(back, visible_text(scheduler, 120))],
        ).response(request, self)

    @admin.action(permissions=["run"], description=gettext_lazy("Run selected schedules now"))
    def run_selected(self, request: HttpRequest, queryset: QuerySet[Scheduler]) -> HttpResponse | None:
        queryset = allowed_only(self, request, queryset, refused_schedules(request.user))
        count = queryset.count()
        if request.POST.get("post") and count <= self.schedules_per_request:
            self._run(request, list(queryset.prefetch_related(*TARGETS)))
            return None
        lead = ngettext(
            "%(count)d schedule will run once, now, even if it is paused. The schedule is not changed.",
            "%(count)d schedules will run once, now, even if they are paused. The schedules are not changed.",
            count,
        )
        too_many = _("At most %(most)d can be run at once. Choose fewer, or narrow the filter.") % {
            "most": self.schedules_per_request
        }
        return Confirmation(
            title=_("Run schedules now"),
            lead=lead % {"count": count},
            submit=_("Run now"),
            back=request.get_full_path(),
            warnings=[too_many] if count > self.schedules_per_request else [],
            samples=[visible_text(row, 120) for row in queryset.prefetch_related(*TARGETS)[:SAMPLES]],
            more=max(count - SAMPLES, 0),
            hidden=[*action_fields(request, "run_selected"), ("key", new_key())],
            blocked=count > self.schedules_per_request,
        ).response(request, self)

    def _run(
        self,
        request: HttpRequest,
        schedulers: list[Scheduler],
        params: dict[str, Any] | None = None,
        *,
        beside: bool = False,
    ) -> list[SchedulerExecution]:
        """Runs schedules, tells the operator the results, and writes audit entries.

        A schedule that cannot run is reported to the operator. The other schedules still run.

        Args:
            params: validated parameters for this run. If None, the schedules' own parameters are validated and used.
            beside: whether the runs start beside others that are not over, whatever the overlap says.
        """
        key, by, done = key_of(request), request.user.get_username(), list[SchedulerExecution]()
        refused: list[str] = []
        before = set(
            SchedulerExecution.objects.filter(
                execution_key=manual_key(key), scheduler__in=[row.pk for row in schedulers]
            ).values_list("scheduler_id", flat=True)
        )
        try:
            with open_broker() as broker:
                for scheduler in schedulers:
                    if params is None and (found := params_problem(scheduler, stored=True)):
                        refused.append(f"{visible_text(scheduler, 120)}: {found}")
                    else:
                        done.append(run_now(scheduler, broker, by, key=key, instead=params, beside=beside))
        except BrokerError as error:
            self.message_user(request, _("The broker cannot be reached: %s") % error, messages.ERROR)
        ran = {execution.scheduler_id for execution in done}
        # A second click on the same page only finds the executions of the first click, so there is no new audit entry.
        new = [row for row in schedulers if row.pk in ran - before]
        edits = params_edits(handler_of(new[0]), new[0].params, params) if new and params is not None else []
        record(request, new, "run now, for this run only" if edits else "run now", edits)
        self._tell(request, done, refused)
        return done

    def _tell(self, request: HttpRequest, made: list[SchedulerExecution], refused: list[str]) -> None:
        done = [row for row in made if row.state not in (State.SKIPPED.value, State.BLOCKED.value)]
        waits = [row for row in made if row.state == State.BLOCKED.value]
        for row in waits[:LINKS]:
            said = format_html("{}: {}", execution_link(row.pk), in_language(row.reason))
            self.message_user(request, said, messages.WARNING)
        if len(waits) > LINKS:
            more = _("%(count)d more wait until the runs before them are over.") % {"count": len(waits) - LINKS}
            self.message_user(request, more, messages.WARNING)
        left_out = [row for row in made if row.state == State.SKIPPED.value]
        refused = refused + [f"{visible_text(row.scheduler, 120)}: {in_language(row.reason)}" for row in left_out]
        for text in refused[:LINKS]:
            self.message_user(request, _("Not run: %s") % text, messages.ERROR)
        if len(refused) > LINKS:
            more = _("%(count)d more could not be run.") % {"count": len(refused) - LINKS}
            self.message_user(request, more, messages.ERROR)
        if done:
            links = format_html_join(", ", "{}", ((execution_link(execution.pk),) for execution in done[:LINKS]))
            rest = "" if len(done) <= LINKS else _("and %(count)s more") % {"count": len(done) - LINKS}
            started = _("%(count)d started:") % {"count": len(done)}
            # The button "Run now" leads to the page of the run, which needs no link to itself.
            alone = "action" not in request.POST and request.user.has_perm("scheduling.view_schedulerexecution")
            message = _("Started.") if alone else format_html("{} {} {}", started, links, rest)
            self.message_user(request, message, messages.SUCCESS)


def _warnings(scheduler: Scheduler, found: str) -> list[str]:
    warnings = []
    if found:
        warnings.append(_("It cannot run with its own parameters, because they do not fit the code. %s") % found)
    if problem := in_language(overlap_now(scheduler.pk)):
        warnings.append(_("It would not start now. %(problem)s") % {"problem": problem})
    elif not scheduler.status:
        warnings.append(_("It is paused, and stays paused after this run."))
    return warnings
