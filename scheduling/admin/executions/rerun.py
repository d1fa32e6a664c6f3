"""The pages for a rerun. A rerun runs an execution's schedule once more, with the execution's parameters.

The button is "Run again". The operator can edit the parameters first.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduling.admin.common.broker import open_broker
from scheduling.admin.common.confirm import Confirmation, key_of, new_key
from scheduling.admin.common.pages import Page
from scheduling.admin.executions.edit_page import EditPage, RunParamsForm
from scheduling.admin.executions.lookup import facts_of, way_back
from scheduling.admin.params.json_field import json_block
from scheduling.admin.ui.links import admin_url, execution_url
from scheduling.admin.ui.targets import unknown_code
from scheduling.broker import BrokerError
from scheduling.core.known_sentences import in_language
from scheduling.core.lifecycle import State
from scheduling.core.occurrences import manual_key
from scheduling.core.text import visible_text
from scheduling.execution.run_now import overlap_now, run_now
from scheduling.handlers.secret_params import masked
from scheduling.handlers.targets import handler_of, handler_of_execution
from scheduling.models import SchedulerExecution
from scheduling.operations.executions import note_rerun, rerun_problem


def left_as_it_is(row: SchedulerExecution) -> str:
    """What happens to the execution that is run again. After a failure, it could be republished, too."""
    if row.state == State.FAILED.value:
        return _("This execution stays in the failed inbox. If you republish it later, the work is done a second time.")
    return _("This execution does not change.")


def rerun_warnings(row: SchedulerExecution) -> list[str]:
    """Sentences that the user should read before the rerun."""
    scheduler, warnings = row.scheduler, list[str]()
    if scheduler is None:
        return warnings
    if problem := in_language(overlap_now(scheduler.pk)):
        warnings.append(_("It would not start now. %(problem)s") % {"problem": problem})
    if (scheduler.target_type, scheduler.target_id) != (row.type, row.target_id):
        text = _("The schedule now has another target: %(target)s will run.")
        warnings.append(text % {"target": visible_text(scheduler.target, 120)})
    if handler_of(scheduler) is None:
        warnings.append(unknown_code(scheduler.target_type))
    return warnings


def run_again(
    model_admin: admin.ModelAdmin, request: HttpRequest, row: SchedulerExecution, params: dict[str, Any]
) -> str:
    """Run the schedule, tell the operator, write audit entries, and return the URL of the page to show next."""
    scheduler, key = row.scheduler, key_of(request)
    assert scheduler is not None  # noqa: S101 - the callers check the schedule
    known = SchedulerExecution.objects.filter(scheduler=scheduler, execution_key=manual_key(key, row.pk)).exists()
    try:
        with open_broker() as broker:
            made = run_now(scheduler, broker, request.user.get_username(), key=key, instead=params, again=row)
    except BrokerError as error:
        model_admin.message_user(request, _("The broker cannot be reached: %s") % error, messages.ERROR)
        return execution_url(row.pk)
    if not known:  # a second click on the same page makes no new execution
        note_rerun(request, row, made, params)
    if made.state == State.SKIPPED.value:
        model_admin.message_user(request, _("Not run: %s") % in_language(made.reason), messages.ERROR)
    elif made.state == State.BLOCKED.value:
        model_admin.message_user(request, _("This is the new run. %s") % in_language(made.reason), messages.WARNING)
    else:
        model_admin.message_user(request, _("Started again: this is the new run."), messages.SUCCESS)
    return execution_url(made.pk)


class Rerun(EditPage):
    """Adds the pages "Run again" and "Edit and run again" to the executions' admin."""

    pages: tuple[Page, ...] = (Page("rerun", "rerun"), Page("edit_rerun", "rerun", "<path:object_id>/rerun/edit/"))
    unchanged = gettext_lazy("Nothing is changed: the same parameters are used again.")

    def has_rerun_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("scheduling.rerun_execution")

    def rerun_view(self, request: HttpRequest, row: SchedulerExecution) -> HttpResponse:
        """GET shows the confirmation page; POST runs the schedule once more with this execution's parameters."""
        problem = rerun_problem(row)
        if request.method == "POST" and not problem:
            return HttpResponseRedirect(run_again(self, request, row, row.params))
        return Confirmation(
            title=_("Run again"),
            lead=" ".join(
                [str(_("One new run starts now, with the parameters of this execution.")), left_as_it_is(row)]
            ),
            submit=_("Run again"),
            facts=[*facts_of(row), (_("Parameters"), json_block(masked(handler_of_execution(row), row.params)))],
            warnings=[*([problem] if problem else []), *rerun_warnings(row)],
            hidden=[("key", new_key())],
            blocked=bool(problem),
            **way_back(row),
        ).response(request, self)

    def edit_rerun_view(self, request: HttpRequest, row: SchedulerExecution) -> HttpResponse:
        """GET shows the form. The form's POST asks for confirmation. The confirmation's POST runs the schedule."""
        scheduler = row.scheduler
        if scheduler is None:
            # The page "Run again" says that the schedule is deleted.
            return HttpResponseRedirect(admin_url("scheduling_schedulerexecution_rerun", row.pk))
        # The parameters are checked against the schedule's present target.
        data = request.POST if request.method == "POST" else None
        form = RunParamsForm(row, handler_of(scheduler), scheduler.target_type, scheduler.target, data)
        return self.edit_response(request, form)

    def edit_question(self, request: HttpRequest, form: RunParamsForm) -> Confirmation:
        return Confirmation(
            title=_("Edit and run again"),
            lead=" ".join(
                [str(_("When you confirm, one new run starts with these parameters.")), left_as_it_is(form.row)]
            ),
            submit=_("Run again"),
            facts=facts_of(form.row),
            warnings=rerun_warnings(form.row),
            hidden=[("key", new_key())],
            **way_back(form.row),
        )

    def apply_edit(self, request: HttpRequest, form: RunParamsForm) -> str:
        return run_again(self, request, form.row, form.cleaned_data["params"])
