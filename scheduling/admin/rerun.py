"""Run again: the schedule of an execution once more, with that execution's parameters and nothing else."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from scheduling.admin import params_diff
from scheduling.admin.confirm import Confirmation, key_of, new_key, page
from scheduling.admin.one_execution import address_of, crumbs_of, facts_of, seen
from scheduling.admin.params_model import masked
from scheduling.admin.parts import json_block, shown
from scheduling.admin.scheduler_panels import handler_of, handler_of_execution
from scheduling.admin.trail import record
from scheduling.admin.transport import transport
from scheduling.broker import BrokerError
from scheduling.contract import problem_of
from scheduling.core.occurrences import manual_key
from scheduling.dispatch import run_now
from scheduling.models import SchedulerExecution


def rerun_problem(row: SchedulerExecution) -> str:
    """Why it cannot run again as it is; empty when it can."""
    if row.scheduler is None:
        return _("Its schedule is deleted: there is nothing to run again.")
    if not isinstance(row.params, dict):
        return _("Its parameters are not a JSON object.")
    former = handler_of_execution(row)
    if former is not handler_of(row.scheduler) and masked(former, row.params) != row.params:
        return _(
            "Its schedule has another target by now, and a secret does not follow it there: edit and run it again."
        )
    # Names of unknown parameters are quoted in it.
    found = shown(problem_of(row.scheduler.target_type, row.scheduler.target, row.params), 1_000)
    return _("Its parameters do not fit its code any more: %s") % found if found else ""


def rerun_warnings(row: SchedulerExecution) -> list[str]:
    """What somebody should know who runs it again."""
    scheduler, warnings = row.scheduler, list[str]()
    if scheduler is None:
        return warnings
    if (scheduler.target_type, scheduler.target_id) != (row.type, row.target_id):
        text = _("Its schedule has another target by now: %(target)s is what will run.")
        warnings.append(text % {"target": shown(scheduler.target, 120)})
    if handler_of(scheduler) is None:
        warnings.append(_("Its code is not registered here, so the parameters cannot be checked."))
    return warnings


def run_again(
    model_admin: admin.ModelAdmin, request: HttpRequest, row: SchedulerExecution, params: dict[str, Any]
) -> str:
    """Run it, tell the operator and the trail; returns the address of the page that shows what came of it."""
    scheduler, key = row.scheduler, key_of(request)
    assert scheduler is not None  # noqa: S101 - the callers have seen to it
    known = SchedulerExecution.objects.filter(scheduler=scheduler, execution_key=manual_key(key, row.pk)).exists()
    try:
        with transport() as broker:
            made = run_now(scheduler, broker, request.user.get_username(), key=key, instead=params, again=row.pk)
    except BrokerError as error:
        model_admin.message_user(request, _("The broker cannot be reached: %s") % error, messages.ERROR)
        return address_of(row)
    if not known:  # else it is a second click on one page
        old = row.params if isinstance(row.params, dict) else {}
        found = params_diff.changes(
            handler_of(scheduler), old, params, params_diff.TRAIL_LIMIT, handler_of_execution(row)
        )
        edits = f"; {params_diff.trail(found)}" if found else ""
        record(request, [row], f"run again: execution {made.pk}{edits}")
        record(request, [scheduler], f"run now: execution {made.pk}, again as {row.pk}{edits}")
    model_admin.message_user(request, _("It runs again, as the execution that is shown here."), messages.SUCCESS)
    return address_of(made)


class Rerun(admin.ModelAdmin):
    """Gives the executions' admin the view."""

    def get_urls(self) -> list[URLPattern]:
        """Its address stands before the catch-all of the page itself."""
        view = self.admin_site.admin_view(self.rerun_view)
        return [path("<path:object_id>/rerun/", view, name="scheduling_schedulerexecution_rerun"), *super().get_urls()]

    def rerun_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """GET asks, POST runs the schedule once more with this execution's parameters."""
        row = seen(self, request, object_id, "scheduling.rerun_execution")
        if row is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined,no-any-return]
        problem = rerun_problem(row)
        if request.method == "POST" and not problem:
            return HttpResponseRedirect(run_again(self, request, row, row.params))
        return page(
            request,
            self,
            Confirmation(
                title=_("Run again"),
                lead=_("Its schedule will run once more, now, with the parameters of this execution."),
                submit=_("Run again"),
                back=address_of(row),
                facts=[
                    *facts_of(row),
                    (_("Parameters"), json_block(masked(handler_of_execution(row), row.params))),
                ],
                warnings=[*([problem] if problem else []), *rerun_warnings(row)],
                hidden=[("key", new_key())],
                blocked=bool(problem),
                crumbs=crumbs_of(row),
            ),
        )
