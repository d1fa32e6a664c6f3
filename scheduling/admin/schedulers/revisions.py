"""The revisions of a schedule in the admin: who has changed it, undo, and restore."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin.views.main import PAGE_VAR
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils import timezone as clock
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduling.admin.common.base import shown_change
from scheduling.admin.common.confirm import Confirmation, reason_field
from scheduling.admin.common.pages import Page, Pages
from scheduling.admin.schedulers.history import History
from scheduling.admin.ui.links import admin_url, scheduler_url
from scheduling.admin.ui.times import EMPTY, time_tag
from scheduling.core.cron import CronError, ZoneError, zone
from scheduling.core.text import is_number, visible_text
from scheduling.models import Scheduler, ScheduleRevision
from scheduling.models.author import authored
from scheduling.models.schedule_revision import REASON_LENGTH
from scheduling.operations import revisions
from scheduling.operations.actor import Actor
from scheduling.operations.next_runs import next_runs
from scheduling.operations.params_diff import Change
from scheduling.operations.refused import Refused
from scheduling.operations.revision_words import changes_in_words, key_word
from scheduling.operations.revisions import Reversal

CHANGE_REASON = "change_reason"
"""The field of the form that says why the schedule is changed."""

WHY: Any = (gettext_lazy("Reason for the change"), {"fields": (CHANGE_REASON,)})
"""The group of fields in the form."""


class ReasonForm(forms.Form):
    """Asks why a revision is taken back."""

    reason = reason_field(REASON_LENGTH, gettext_lazy("Optional. The history shows it."), required=False)


class Revisions(Pages):
    """Writes the user into each revision, shows the history, and takes revisions back."""

    pages: tuple[Page, ...] = (Page("undo", "change"), Page("restore", "change"))

    def save_model(self, request: HttpRequest, obj: Scheduler, form: ModelForm, change: bool) -> None:
        reason = str(form.cleaned_data.get(CHANGE_REASON) or "")
        source = getattr(form, "source", None)
        if source is not None and not change:
            reason = _("Added as a copy of schedule %(id)s") % {"id": source.pk}
        with authored(Actor(request.user).author(reason)):
            super().save_model(request, obj, form, change)

    def delete_model(self, request: HttpRequest, obj: Scheduler) -> None:
        with authored(Actor(request.user).author()):
            super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Scheduler]) -> None:
        with authored(Actor(request.user).author()):
            super().delete_queryset(request, queryset)

    def get_fieldsets(self, request: HttpRequest, obj: Scheduler | None = None) -> Any:
        """Asks for a reason only where an existing schedule can be changed."""
        found = super().get_fieldsets(request, obj)
        if obj is not None and self.has_change_permission(request, obj):
            return found
        return [(title, options) for title, options in found if CHANGE_REASON not in options["fields"]]

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Shows the revisions beside the other entries, the newest first."""
        response = super().history_view(request, object_id, extra_context)
        if isinstance(response, TemplateResponse) and response.context_data is not None:
            row, former = response.context_data["object"], response.context_data["action_list"].paginator
            lines: Any = History(row)
            pages = self.get_paginator(request, lines, former.per_page)
            shown = pages.get_page(request.GET.get(PAGE_VAR, 1))
            response.context_data |= {
                "action_list": shown,
                "pagination_required": pages.count > former.per_page,
                "page_range": pages.get_elided_page_range(shown.number),
                "may_reverse": self.has_change_permission(request, row),
            }
        return response

    def undo_view(self, request: HttpRequest, row: Scheduler) -> HttpResponse:
        """GET shows what the undo of the revision `number` changes. POST does it."""
        title = _("Undo revision %(number)s")
        return self._reverse_view(request, row, revisions.undo_of, title, _("Undo"))

    def restore_view(self, request: HttpRequest, row: Scheduler) -> HttpResponse:
        """GET shows how the state of the revision `number` differs from the present one. POST restores it."""
        title = _("Restore the state of revision %(number)s")
        return self._reverse_view(request, row, revisions.restore_of, title, _("Restore"))

    def _reverse_view(
        self, request: HttpRequest, row: Scheduler, find: Callable[[Actor, int, int], Reversal], title: str, submit: str
    ) -> HttpResponse:
        history = admin_url("scheduling_scheduler_history", row.pk)
        number = request.POST.get("number") or request.GET.get("number", "")
        if not is_number(number, 9):
            self.message_user(request, _("Choose a revision in the history."), messages.WARNING)
            return HttpResponseRedirect(history)
        actor, form = Actor(request.user), ReasonForm(request.POST if request.method == "POST" else None)
        try:
            found = find(actor, row.pk, int(number))
            after = revisions.after(actor, found)
            if form.is_valid():
                revisions.reverse(actor, found, form.cleaned_data["reason"].strip()[:REASON_LENGTH])
                self.message_user(request, _("The schedule was changed back."), messages.SUCCESS)
                return HttpResponseRedirect(history)
        except Refused as refused:
            self.message_user(request, visible_text(refused.said, 1_000), messages.ERROR)
            return HttpResponseRedirect(history)
        name = visible_text(row, 120)
        return Confirmation(
            title=title % {"number": number},
            lead=_("“%(name)s” gets these values, as a new revision.") % {"name": name},
            submit=submit,
            back=history,
            facts=[(_("Next runs now"), _runs(row)), (_("Next runs then"), _runs(after))],
            changes=[
                Change(*shown_change(change, Scheduler))
                for change in changes_in_words(ScheduleRevision.of_edits(found.edits))
            ],
            changed_kind=_("Field"),
            warnings=_kept(found),
            form=form,
            hidden=[("number", number)],
            crumbs=[(scheduler_url(row.pk), name), (history, _("History"))],
        ).response(request, self)


def _runs(row: Scheduler) -> SafeString | str:
    """The next runs, one in a line."""
    if not row.status:
        return _("paused")
    try:
        info, runs = zone(row.zone_name), next_runs(row, 5, clock.now())
    except (CronError, ZoneError) as error:
        return visible_text(error, 500)
    return format_html_join("", "{}<br>", ((time_tag(run, info),) for run in runs)) if runs else EMPTY


def _kept(found: Reversal) -> list[str]:
    """Which values stay, because no revision holds their former ones."""
    if not found.unknown:
        return []
    names = visible_text(", ".join(map(key_word, found.unknown)), 300)
    return [_("These keep their present values, because no revision holds secrets: %(names)s.") % {"names": names}]
