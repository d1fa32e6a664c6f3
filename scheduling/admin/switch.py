"""On and off: two actions, not one that turns things round, so that a stale page cannot do the opposite.

Whoever switches off is asked why; the answer stands wherever the schedule is shown to be off.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin import helpers
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from scheduling.admin.confirm import Confirmation, page
from scheduling.admin.selection import in_chunks
from scheduling.admin.text import shown, told
from scheduling.admin.trail import EMPTY, record
from scheduling.models import Scheduler
from scheduling.models.scheduler import TARGETS

SAMPLES = 10
REASON_LIMIT = 500
DASHBOARD = "dashboard"


class Switch(admin.ModelAdmin):
    """Gives the Scheduler's list the two actions, and its page the two buttons."""

    def has_pause_permission(self, request: HttpRequest) -> bool:
        """Whether somebody may switch schedules on and off: by its own permission, or as an editor."""
        return request.user.has_perm("scheduling.pause_scheduler") or self.has_change_permission(request)

    def get_urls(self) -> list[URLPattern]:
        """Before the catch-all of the change page."""
        wrap = self.admin_site.admin_view
        return [
            path("<path:object_id>/pause/", wrap(self.pause_view), name="scheduling_scheduler_pause"),
            path("<path:object_id>/resume/", wrap(self.resume_view), name="scheduling_scheduler_resume"),
            *super().get_urls(),
        ]

    def pause_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """GET asks for a reason, which may be left out; POST pauses."""
        return self._switch_view(request, object_id, False)

    def resume_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """GET asks, POST resumes."""
        return self._switch_view(request, object_id, True)

    def _switch_view(self, request: HttpRequest, object_id: str, on: bool) -> HttpResponse:
        if not self.has_pause_permission(request):
            raise PermissionDenied
        row: Scheduler | None = self.get_object(request, unquote(object_id))
        if not self.has_view_or_change_permission(request, row):
            raise PermissionDenied
        if row is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined,no-any-return]
        own = reverse("admin:scheduling_scheduler_change", args=[row.pk])
        back = self._back(request) or own
        if request.method == "POST":
            self._switch(request, Scheduler.objects.filter(pk=row.pk), on)
            return HttpResponseRedirect(back)
        if row.status == on:
            self.message_user(request, _("It is on already.") if on else _("It is off already."), messages.WARNING)
            return HttpResponseRedirect(back)
        lead = (
            _("“%(name)s” will run at its times again, from now on. What was missed while it was off stays missed.")
            if on
            else _("“%(name)s” will not run at its times until somebody resumes it. What waits or runs goes on.")
        )
        return page(
            request,
            self,
            Confirmation(
                title=_("Resume") if on else _("Pause"),
                lead=lead % {"name": shown(row, 120)},
                submit=_("Resume") if on else _("Pause"),
                back=back,
                facts=[(_("Reason for the pause"), shown(row.paused_because))] if row.paused_because else [],
                ask_reason=not on,
                reason_optional=True,
                hidden=[("back", request.GET.get("back", "")[:20])],
                crumbs=[(own, shown(row, 120))],
            ),
        )

    @staticmethod
    def _back(request: HttpRequest) -> str:
        """To a page that is known by a word: an address from outside would lead anywhere."""
        word = request.POST.get("back") or request.GET.get("back")
        return reverse("admin:scheduling_dashboard_changelist") if word == DASHBOARD else ""

    @admin.action(permissions=["pause"], description=gettext_lazy("Switch selected schedules on"))
    def switch_on(self, request: HttpRequest, queryset: QuerySet[Scheduler]) -> None:
        """Plan the next run from now on; what was missed while it was off stays missed."""
        self._switch(request, queryset, True)

    @admin.action(permissions=["pause"], description=gettext_lazy("Switch selected schedules off"))
    def switch_off(self, request: HttpRequest, queryset: QuerySet[Scheduler]) -> HttpResponse | None:
        """Nothing more is claimed; what waits or runs goes on. Asks for a reason first."""
        if request.POST.get("post"):
            self._switch(request, queryset, False)
            return None
        chosen = queryset.filter(status=True)
        count = chosen.count()
        across = request.POST.get("select_across") == "1"
        keys = ["all"] if across else request.POST.getlist(helpers.ACTION_CHECKBOX_NAME)
        lead = ngettext(
            "%(count)d schedule will not run at its times until somebody switches it on. What waits or runs goes on.",
            "%(count)d schedules will not run at their times until somebody switches them on. "
            "What waits or runs goes on.",
            count,
        )
        hidden: list[tuple[str, Any]] = [("action", "switch_off"), ("post", "yes"), ("select_across", int(across))]
        return page(
            request,
            self,
            Confirmation(
                title=_("Switch schedules off"),
                lead=lead % {"count": count},
                submit=_("Switch off"),
                back=request.get_full_path(),
                samples=[shown(row, 120) for row in chosen.prefetch_related(*TARGETS)[:SAMPLES]],
                more=max(count - SAMPLES, 0),
                ask_reason=True,
                reason_optional=True,
                hidden=[*hidden, *((helpers.ACTION_CHECKBOX_NAME, key) for key in keys)],
                warnings=[] if count else [_("All of them are off already.")],
                blocked=not count,
            ),
        )

    def _switch(self, request: HttpRequest, queryset: QuerySet[Scheduler], on: bool) -> None:
        reason = "" if on else " ".join(request.POST.get("reason", "").replace("\x00", "").split())[:REASON_LIMIT]
        changed, refused = 0, list[str]()
        for chunk in in_chunks(queryset.filter(status=not on).prefetch_related(*TARGETS)):
            done: dict[str, list[Scheduler]] = {}
            for row in chunk:
                former, row.status, row.pause_reason = row.pause_reason, on, reason
                try:
                    row.save(update_fields=["status", "pause_reason", "updated_at"])
                except ValidationError as error:
                    refused.append(f"{shown(row, 120)}: {' '.join(error.messages)}")
                else:
                    done.setdefault(_said(on, former, reason), []).append(row)
            for said, rows in done.items():
                record(request, rows, said)
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
            self.message_user(request, _("%(count)d are left; do it again.") % {"count": left}, messages.WARNING)


def _said(on: bool, former: str, reason: str) -> str:
    said = f"status: {_word(not on)} -> {_word(on)}"
    if former == reason:
        return said
    return f"{said}; pause_reason: {told(former) or EMPTY} -> {told(reason) or EMPTY}"


def _word(on: bool) -> str:
    return "yes" if on else "no"
