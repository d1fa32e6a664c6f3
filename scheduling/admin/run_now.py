"""Run now: a button on the schedule's page and an action on the list, each with a page in between."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin import helpers
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from scheduling.admin import params_diff
from scheduling.admin.confirm import Confirmation, key_of, new_key, page
from scheduling.admin.params_form import ParamsForm
from scheduling.admin.params_inputs import NAME
from scheduling.admin.scheduler_panels import handler_of, params_problem
from scheduling.admin.text import shown
from scheduling.admin.trail import record
from scheduling.admin.transport import transport
from scheduling.broker import BrokerError
from scheduling.core.occurrences import manual_key
from scheduling.dispatch import run_now
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.scheduler import TARGETS

SAMPLES = 10
MOST = 500
"""Schedules in one go: what one request can do without the operator waiting for it."""
LINKS = 5


def execution_link(execution: SchedulerExecution, text: str = "") -> SafeString:
    """The way to an execution's page."""
    address = reverse("admin:scheduling_schedulerexecution_change", args=[execution.pk])
    return format_html('<a href="{}">{}</a>', address, text or _("execution %(id)s") % {"id": execution.pk})


class RunNow(admin.ModelAdmin):
    """Gives the Scheduler's pages the button, the action and the view behind them."""

    def has_run_permission(self, request: HttpRequest) -> bool:
        """Whether somebody may run schedules by hand."""
        return request.user.has_perm("scheduling.run_scheduler")

    def get_urls(self) -> list[URLPattern]:
        """The view's address stands before the catch-all of the change page."""
        view = self.admin_site.admin_view(self.run_view)
        return [path("<path:object_id>/run/", view, name="scheduling_scheduler_run"), *super().get_urls()]

    def run_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """GET asks, POST runs."""
        if not self.has_run_permission(request):
            raise PermissionDenied
        scheduler = self.get_object(request, unquote(object_id))
        if not self.has_view_or_change_permission(request, scheduler):
            raise PermissionDenied
        if scheduler is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined,no-any-return]
        back = reverse("admin:scheduling_scheduler_change", args=[scheduler.pk])
        posted = request.POST if request.method == "POST" else None
        # The dashboard's button sends no parameters: then the schedule's own are taken.
        form = self._params(scheduler, posted if posted is not None and NAME in posted else None)
        if posted is not None and (wanted := ParamsForm.wanted(posted)) is not None:
            return form.fragment(wanted)
        found = params_problem(scheduler)
        blocked = scheduler.target is None or not isinstance(getattr(scheduler.target, "params", {}), dict)
        if posted is not None and not blocked and (form.is_valid() if form.bound else not found):
            done = self._run(request, [scheduler], form.params if form.bound else None)
            if done and request.user.has_perm("scheduling.view_schedulerexecution"):
                back = reverse("admin:scheduling_schedulerexecution_change", args=[done[0].pk])
            return HttpResponseRedirect(back)
        lead = _("“%(name)s” will run once, now. Its own times stay as they are.") % {"name": shown(scheduler, 120)}
        return page(
            request,
            self,
            Confirmation(
                title=_("Run now"),
                lead=lead,
                submit=_("Run now"),
                back=back,
                error=_("Please correct the error below.") if form.errors else "",
                warnings=_warnings(scheduler, found if not form.bound or blocked else ""),
                facts=[(_("Target"), shown(scheduler.target, 120)), (_("Type"), scheduler.target_type)],
                hidden=[("key", key_of(request) if form.bound else new_key())],
                params=form,
                blocked=blocked,
                crumbs=[(back, shown(scheduler, 120))],
            ),
        )

    @staticmethod
    def _params(scheduler: Scheduler, data: Any) -> ParamsForm:
        inherited = getattr(scheduler.target, "params", None)
        return ParamsForm(handler_of(scheduler), scheduler.params, inherited=inherited, data=data)

    @admin.action(permissions=["run"], description=gettext_lazy("Run selected schedules now"))
    def run_selected(self, request: HttpRequest, queryset: QuerySet[Scheduler]) -> HttpResponse | None:
        """The list's action."""
        count = queryset.count()
        if request.POST.get("post") and count <= MOST:
            self._run(request, list(queryset.prefetch_related(*TARGETS)))
            return None
        across = request.POST.get("select_across") == "1"
        chosen = ["all"] if across else request.POST.getlist(helpers.ACTION_CHECKBOX_NAME)
        lead = ngettext(
            "%(count)d schedule will run once, now, whether it is switched on or not. Its own times stay as they are.",
            "%(count)d schedules will run once, now, whether they are switched on or not. Their own times stay.",
            count,
        )
        hidden: list[tuple[str, Any]] = [("action", "run_selected"), ("post", "yes"), ("key", new_key())]
        hidden += [("select_across", int(across)), *((helpers.ACTION_CHECKBOX_NAME, pk) for pk in chosen)]
        too_many = _("At most %(most)d can be run at once. Choose fewer, or narrow the filter.") % {"most": MOST}
        return page(
            request,
            self,
            Confirmation(
                title=_("Run schedules now"),
                lead=lead % {"count": count},
                submit=_("Run now"),
                back=request.get_full_path(),
                warnings=[too_many] if count > MOST else [],
                samples=[shown(row, 120) for row in queryset.prefetch_related(*TARGETS)[:SAMPLES]],
                more=max(count - SAMPLES, 0),
                hidden=hidden,
                blocked=count > MOST,
            ),
        )

    def _run(
        self, request: HttpRequest, schedulers: list[Scheduler], params: dict[str, Any] | None = None
    ) -> list[SchedulerExecution]:
        """Run each, tell the operator and the trail; what cannot run is named, and stops no other.

        Args:
            params: checked already, for this run only, in place of the schedule's own.
        """
        key, by, done = key_of(request), request.user.get_username(), list[SchedulerExecution]()
        refused: list[str] = []
        before = set(
            SchedulerExecution.objects.filter(
                execution_key=manual_key(key), scheduler__in=[each.pk for each in schedulers]
            ).values_list("scheduler_id", flat=True)
        )
        try:
            with transport() as broker:
                for scheduler in schedulers:
                    if params is None and (found := params_problem(scheduler)):
                        refused.append(f"{shown(scheduler, 120)}: {found}")
                    else:
                        done.append(run_now(scheduler, broker, by, key=key, instead=params))
        except BrokerError as error:
            self.message_user(request, _("The broker cannot be reached: %s") % error, messages.ERROR)
        ran = {execution.scheduler_id for execution in done}
        # A second click on one page finds the first one's rows: nothing was done, nothing is recorded.
        new = [each for each in schedulers if each.pk in ran - before]
        record(request, new, _said(new[0], params) if new and params is not None else "run now")
        self._tell(request, done, refused)
        return done

    def _tell(self, request: HttpRequest, done: list[SchedulerExecution], refused: list[str]) -> None:
        for text in refused[:LINKS]:
            self.message_user(request, _("Not run: %s") % text, messages.ERROR)
        if len(refused) > LINKS:
            more = _("%(count)d more could not be run.") % {"count": len(refused) - LINKS}
            self.message_user(request, more, messages.ERROR)
        if done:
            links = format_html_join(", ", "{}", ((execution_link(each),) for each in done[:LINKS]))
            text = ngettext("%(count)d run is on its way:", "%(count)d runs are on their way:", len(done))
            rest = "" if len(done) <= LINKS else _("and %(count)d more") % {"count": len(done) - LINKS}
            message = format_html("{} {} {}", text % {"count": len(done)}, links, rest)
            self.message_user(request, message, messages.SUCCESS)


def _said(scheduler: Scheduler, params: dict[str, Any]) -> str:
    own = scheduler.params if isinstance(scheduler.params, dict) else {}
    found = params_diff.changes(handler_of(scheduler), own, params, params_diff.TRAIL_LIMIT)
    return f"run now, for this run only: {params_diff.trail(found)}" if found else "run now"


def _warnings(scheduler: Scheduler, found: str) -> list[str]:
    warnings = []
    if found:
        warnings.append(_("It cannot run with its own parameters: they do not fit its code. %s") % found)
    if not scheduler.status:
        warnings.append(_("It is switched off. Running it by hand does not switch it on."))
    return warnings
