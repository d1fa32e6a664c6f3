"""The actions and buttons that pause and resume schedules.

Pause and resume are two actions, because a toggle on an outdated page would do the opposite of what the operator wants.
A pause asks for a reason. Pages that show the schedule as paused also show the reason.
"""

from __future__ import annotations

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone as clock
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from scheduling.admin.common.batches import allowed_only
from scheduling.admin.common.confirm import SAMPLES, Confirmation, action_fields, reason_field
from scheduling.admin.common.continuation import remaining
from scheduling.admin.common.pages import Page, Pages
from scheduling.admin.ui.links import list_url, scheduler_url
from scheduling.core.known_sentences import for_reader
from scheduling.core.targets import TARGETS
from scheduling.core.text import visible_text
from scheduling.handlers.permission import refused_schedules
from scheduling.models import Scheduler
from scheduling.operations.actor import Actor
from scheduling.operations.audit import record
from scheduling.operations.batches import in_chunks
from scheduling.operations.catch_up import resume_words
from scheduling.operations.params_diff import Change
from scheduling.operations.pause_reason import REASON_LIMIT, pause_reason
from scheduling.operations.schedule_state import switch

DASHBOARD = "dashboard"


class PauseForm(forms.Form):
    """Asks why the schedule is paused."""

    reason = reason_field(REASON_LIMIT, gettext_lazy("Optional. Shown to your colleagues."), required=False)

    def clean_reason(self) -> str:
        return pause_reason(self.cleaned_data["reason"])


class PauseActions(Pages):
    """The two actions on the list of Schedulers, and the two buttons on a schedule's page."""

    pages: tuple[Page, ...] = (Page("pause", "pause"), Page("resume", "pause"))

    def has_pause_permission(self, request: HttpRequest) -> bool:
        """Whether the user has the permission to pause schedules or the permission to change them."""
        return request.user.has_perm("scheduling.pause_scheduler") or self.has_change_permission(request)

    def pause_view(self, request: HttpRequest, row: Scheduler) -> HttpResponse:
        """GET asks for a reason, which is optional. POST pauses the schedule."""
        return self._switch_view(request, row, False)

    def resume_view(self, request: HttpRequest, row: Scheduler) -> HttpResponse:
        """GET asks for confirmation. POST resumes the schedule."""
        return self._switch_view(request, row, True)

    def _switch_view(self, request: HttpRequest, row: Scheduler, on: bool) -> HttpResponse:
        own = scheduler_url(row.pk)
        back = self._back(request) or own
        form = (forms.Form if on else PauseForm)(request.POST if request.method == "POST" else None)
        if form.is_valid():
            self._switch(request, Scheduler.objects.filter(pk=row.pk), on, form.cleaned_data.get("reason", ""))
            return HttpResponseRedirect(back)
        if row.status == on:
            self.message_user(request, _("It is not paused.") if on else _("It is already paused."), messages.WARNING)
            return HttpResponseRedirect(back)
        told: list[str] = []
        if on:
            lead = _("“%(name)s” will run on schedule again. Runs missed during the pause will not run.")
            told = resume_words(row, clock.now())
        elif row.stay_alive:
            lead = _("“%(name)s” is a service: it ends within seconds, and does not run until it is resumed.")
        else:
            lead = _(
                "“%(name)s” will not run on schedule until it is resumed. You can still run it by hand. "
                "Runs already queued or running continue."
            )
        return Confirmation(
            title=_("Resume") if on else _("Pause"),
            lead=lead % {"name": visible_text(row, 120)},
            submit=_("Resume") if on else _("Pause"),
            back=back,
            facts=[
                *([(_("Reason for the pause"), for_reader(row.paused_because))] if row.paused_because else []),
                *([(_("During the pause"), " ".join(told))] if told else []),
            ],
            form=form,
            hidden=[("back", (request.POST.get("back") or request.GET.get("back", ""))[:20])],
            crumbs=[(own, visible_text(row, 120))],
        ).response(request, self)

    @staticmethod
    def _back(request: HttpRequest) -> str:
        """The URL of the page to return to; empty if the request names no such page.

        The request names the page by a word, because a URL could lead to another site.
        """
        word = request.POST.get("back") or request.GET.get("back")
        return list_url("dashboard") if word == DASHBOARD else ""

    @admin.action(permissions=["pause"], description=gettext_lazy("Resume selected"))
    def resume_selected(self, request: HttpRequest, queryset: QuerySet[Scheduler]) -> None:
        """Plans the next runs from now on. Occurrences that fell due while a schedule was paused do not run."""
        queryset = allowed_only(self, request, queryset, refused_schedules(request.user))
        self._switch(request, queryset, True)

    @admin.action(permissions=["pause"], description=gettext_lazy("Pause selected"))
    def pause_selected(self, request: HttpRequest, queryset: QuerySet[Scheduler]) -> HttpResponse | None:
        """Asks for a reason, then pauses. New occurrences are not claimed. Executions that wait or run continue."""
        queryset = allowed_only(self, request, queryset, refused_schedules(request.user))
        form = PauseForm(request.POST if request.POST.get("post") else None)
        if form.is_valid():
            self._switch(request, queryset, False, form.cleaned_data["reason"])
            return None
        chosen = queryset.filter(status=True)
        count = chosen.count()
        lead = ngettext(
            "%(count)d schedule will not run at its times until it is resumed. You can still run it by hand. "
            "Runs already queued or running continue.",
            "%(count)d schedules will not run at their times until they are resumed. You can still run them by hand. "
            "Runs already queued or running continue.",
            count,
        )
        return Confirmation(
            title=_("Pause schedules"),
            lead=lead % {"count": count},
            submit=_("Pause"),
            back=request.get_full_path(),
            samples=[visible_text(row, 120) for row in chosen.prefetch_related(*TARGETS)[:SAMPLES]],
            more=max(count - SAMPLES, 0),
            form=form,
            hidden=action_fields(request, "pause_selected"),
            warnings=_ending(chosen) if count else [_("All of them are already paused.")],
            blocked=not count,
        ).response(request, self)

    def _switch(self, request: HttpRequest, queryset: QuerySet[Scheduler], on: bool, reason: str = "") -> None:
        changed, refused, by = 0, list[str](), Actor(request.user)
        for chunk in in_chunks(queryset.filter(status=not on).prefetch_related(*TARGETS)):
            done: dict[tuple[Change, ...], list[Scheduler]] = {}
            for row in chunk:
                try:
                    edits = switch(row, on, reason, by.author(reason), by.get_username())
                except ValidationError as error:
                    refused.append(f"{visible_text(row, 120)}: {' '.join(error.messages)}")
                else:
                    done.setdefault(tuple(edits), []).append(row)
            for said, rows in done.items():
                record(request, rows, "", said)
                changed += len(rows)
        text = (
            ngettext("%(count)d schedule was resumed.", "%(count)d schedules were resumed.", changed)
            if on
            else ngettext("%(count)d schedule was paused.", "%(count)d schedules were paused.", changed)
        )
        self.message_user(request, text % {"count": changed}, messages.SUCCESS if changed else messages.WARNING)
        for sentence in refused[:5]:
            self.message_user(request, _("Not changed: %s") % sentence, messages.ERROR)
        if left := queryset.filter(status=not on).count() - len(refused):
            action = "resume_selected" if on else "pause_selected"
            self.message_user(request, remaining(request, left, action, {"reason": reason}), messages.WARNING)


def _ending(chosen: QuerySet[Scheduler]) -> list[str]:
    """A warning if some of the schedules are services, because a pause ends them."""
    services = chosen.filter(stay_alive=True).count()
    text = ngettext(
        "%(count)d of them is a service, which ends within seconds.",
        "%(count)d of them are services, which end within seconds.",
        services,
    )
    return [text % {"count": services}] if services else []
