"""On and off: two actions, not one that turns things round, so that a stale page cannot do the opposite."""

from __future__ import annotations

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from scheduling.admin.selection import in_chunks
from scheduling.admin.trail import record
from scheduling.models import Scheduler
from scheduling.models.scheduler import TARGETS


class Switch(admin.ModelAdmin):
    """Gives the Scheduler's list the two actions."""

    def has_pause_permission(self, request: HttpRequest) -> bool:
        """Whether somebody may switch schedules on and off: by its own permission, or as an editor."""
        return request.user.has_perm("scheduling.pause_scheduler") or self.has_change_permission(request)

    @admin.action(permissions=["pause"], description=gettext_lazy("Switch selected schedules on"))
    def switch_on(self, request: HttpRequest, queryset: QuerySet[Scheduler]) -> None:
        """Plan the next run from now on; what was missed while it was off stays missed."""
        self._switch(request, queryset, True)

    @admin.action(permissions=["pause"], description=gettext_lazy("Switch selected schedules off"))
    def switch_off(self, request: HttpRequest, queryset: QuerySet[Scheduler]) -> None:
        """Nothing more is claimed; what waits or runs goes on."""
        self._switch(request, queryset, False)

    def _switch(self, request: HttpRequest, queryset: QuerySet[Scheduler], on: bool) -> None:
        changed, refused = 0, list[str]()
        for chunk in in_chunks(queryset.filter(status=not on).prefetch_related(*TARGETS)):
            done = []
            for row in chunk:
                row.status = on
                try:
                    row.save(update_fields=["status", "updated_at"])
                except ValidationError as error:
                    refused.append(f"{row}: {' '.join(error.messages)}")
                else:
                    done.append(row)
            record(request, done, f"status: {_word(not on)} -> {_word(on)}")
            changed += len(done)
        text = (
            ngettext("%(count)d schedule was switched on.", "%(count)d schedules were switched on.", changed)
            if on
            else ngettext("%(count)d schedule was switched off.", "%(count)d schedules were switched off.", changed)
        )
        self.message_user(request, text % {"count": changed}, messages.SUCCESS if changed else messages.WARNING)
        for sentence in refused[:5]:
            self.message_user(request, _("Not changed: %s") % sentence, messages.ERROR)
        if left := queryset.filter(status=not on).count() - len(refused):
            self.message_user(request, _("%(count)d are left; do it again.") % {"count": left}, messages.WARNING)


def _word(on: bool) -> str:
    return "yes" if on else "no"
