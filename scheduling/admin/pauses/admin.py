"""The pages of pauses: what is paused now, and the buttons that pause and resume."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone as clock
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from scheduling.admin.common.audited import Audited
from scheduling.admin.common.pages import Page
from scheduling.admin.common.safe_text import column
from scheduling.admin.common.viewer import Viewer
from scheduling.admin.pauses.form import WHAT, PauseForm
from scheduling.admin.ui.badges import badge
from scheduling.admin.ui.links import admin_url
from scheduling.admin.ui.times import EMPTY, time_with_relative
from scheduling.core.text import visible_text
from scheduling.handlers.permission import refusal
from scheduling.models import Pause
from scheduling.operations.audit import record
from scheduling.operations.params_diff import Change


@admin.register(Pause)
class PauseAdmin(Audited):
    form = PauseForm
    change_form_template = "admin/scheduling/pause/change_form.html"
    list_display = ("subject_shown", "state", column(Pause, "reason"), "since", column(Pause, "paused_by"), "ends")
    readonly_fields = ("subject_shown", "since", "paused_by")
    actions = None
    no_rows = _("A pause stops a handler, a queue or the whole site from starting runs. What is due waits.")
    pages: tuple[Page, ...] = (Page("resume", "pause", methods=("POST",)),)

    def code_of(self, row: Any) -> None:
        """A pause names code, but has no parameters."""

    def get_fields(self, request: HttpRequest, obj: Pause | None = None) -> tuple[str, ...]:
        """The fields of the form. What is paused cannot be changed afterwards."""
        if obj is None:
            return (WHAT, "reason", "ends_at")
        return ("subject_shown", "reason", "ends_at", "since", "paused_by")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """The form of a stored pause does not ask what is paused."""
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.user = request.user
        if obj is not None:
            form.base_fields.pop(WHAT, None)
        return form

    def has_pause_permission(self, request: HttpRequest) -> bool:
        return Viewer.of(request).may_pause_work

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.has_pause_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_pause_permission(request) and (obj is None or not refusal(request.user, obj))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A pause is not deleted: a producer must know that it has ended, and wakes the runs that wait."""
        return False

    def save_model(self, request: HttpRequest, obj: Pause, form: Any, change: bool) -> None:
        if not change:
            obj.paused_at, obj.paused_by = clock.now(), request.user.get_username()
            if (replaced := getattr(obj, "replaced", None)) is not None:
                Pause.objects.filter(pk=replaced).delete()
        super().save_model(request, obj, form, change)

    def edits_of(self, form: Any) -> list[Change]:
        """The changed fields. Of a new pause, the entry tells what is paused."""
        edits = [edit for edit in super().edits_of(form) if edit.name != WHAT]
        return edits if form.initial else [Change("name", None, form.instance.subject), *edits]

    def resume_view(self, request: HttpRequest, row: Pause) -> HttpResponse:
        """POST ends the pause. A producer then wakes the runs that wait for it."""
        now = clock.now()
        if row.ends_at is None or row.ends_at > now:
            Pause.objects.filter(pk=row.pk).update(ends_at=now)
            record(request, [row], "resume", [Change("reason", visible_text(row.reason, 500), None)])
            self.message_user(request, _t("%(subject)s: resumed.") % {"subject": row.subject}, messages.SUCCESS)
        else:
            self.message_user(request, _t("It is not paused."), messages.WARNING)
        return HttpResponseRedirect(admin_url("scheduling_pause_changelist"))

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Adds the button that resumes."""
        row = context.get("original")
        if row is not None and not is_over(row) and self.has_change_permission(request, row):
            context["resume"] = admin_url("scheduling_pause_resume", row.pk)
        return super().render_change_form(request, context, *args, **kwargs)

    @admin.display(description=_("what"))
    def subject_shown(self, row: Pause) -> str:
        return row.subject

    @admin.display(description=_("state"))
    def state(self, row: Pause) -> str:
        return badge(_t("ended"), "check", "off") if is_over(row) else badge(_t("paused"), "pause", "warn")

    @admin.display(description=_("paused since"))
    def since(self, row: Pause) -> str:
        return time_with_relative(row.paused_at)

    @admin.display(description=_("ends"))
    def ends(self, row: Pause) -> str:
        return EMPTY if row.ends_at is None else time_with_relative(row.ends_at)


def is_over(row: Pause) -> bool:
    """Whether the pause has ended."""
    return row.ends_at is not None and row.ends_at <= clock.now()
