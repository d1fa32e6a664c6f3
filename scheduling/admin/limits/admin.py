"""The pages of limits: how many runs of each key run and wait, and the limits that users have lowered."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils import timezone as clock
from django.utils.translation import gettext_lazy as _

from scheduling.admin.common.audited import Audited
from scheduling.admin.common.read_only import ReadOnly
from scheduling.admin.common.safe_text import column
from scheduling.admin.common.viewer import Viewer
from scheduling.admin.limits.form import HANDLER, LoweredLimitForm
from scheduling.admin.limits.words import rules_in_words
from scheduling.admin.ui.times import EMPTY, time_with_relative
from scheduling.core.text import visible_text
from scheduling.handlers.permission import refusal
from scheduling.models import LimitKey, LimitPlace, LoweredLimit
from scheduling.operations.params_diff import Change


def _number_of(*states: str) -> Any:
    rows = LimitPlace.objects.filter(limit=OuterRef("pk"), state__in=states).order_by().values("limit")
    counted = rows.annotate(number=Count("pk")).values("number")
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)


@admin.register(LimitKey)
class LimitKeyAdmin(ReadOnly):
    """The pages are read-only: the consumers write the rows. Keys come from the params of the runs of all groups."""

    list_display = ("subject_shown", "running", "waiting", "rules", "used")
    readonly_fields = ("subject_shown", "running", "waiting", "rules", "used")
    fields = readonly_fields
    search_fields = ("name", "key")
    actions = None
    no_rows = _("A handler with the option “limit” is listed here, with each of its keys, when a run has started.")

    def get_queryset(self, request: HttpRequest) -> QuerySet[LimitKey]:
        held, waits = LimitPlace.States.HELD.value, LimitPlace.States.WAITING.value
        found: QuerySet[LimitKey] = super().get_queryset(request)
        lowered = LoweredLimit.objects.filter(type=OuterRef("type"), name=OuterRef("name")).order_by("pk")
        return found.annotate(
            running_now=_number_of(held),
            waiting_now=_number_of(waits),
            lowered_at_once=Subquery(lowered.values("at_once")[:1]),
            lowered_starts=Subquery(lowered.values("starts")[:1]),
        )

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_view_permission(request, obj) and not Viewer.of(request).visible.is_limited

    @admin.display(description=_("handler and key"))
    def subject_shown(self, row: LimitKey) -> str:
        return row.subject

    @admin.display(description=_("running"))
    def running(self, row: Any) -> str:
        return str(row.running_now)

    @admin.display(description=_("waiting"))
    def waiting(self, row: Any) -> str:
        return str(row.waiting_now)

    @admin.display(description=_("limit"))
    def rules(self, row: Any) -> str:
        return rules_in_words(row.type, row.name, row.lowered_at_once, row.lowered_starts) or EMPTY

    @admin.display(description=_("last start"))
    def used(self, row: LimitKey) -> str:
        return time_with_relative(row.used_at)


@admin.register(LoweredLimit)
class LoweredLimitAdmin(Audited):
    """Users lower the limit of a handler with a reason, and delete the row to end that."""

    form = LoweredLimitForm
    list_display = ("subject_shown", "at_once", "starts", column(LoweredLimit, "reason"), "since", "by")
    readonly_fields = ("subject_shown", "since", "by", "rules")
    actions = None
    no_rows = _("The limits of the code hold. Add a row to lower the limit of a handler for a while.")

    def code_of(self, row: Any) -> None:
        """A lowered limit names code, but has no parameters."""

    def get_fields(self, request: HttpRequest, obj: LoweredLimit | None = None) -> tuple[str, ...]:
        if obj is None:
            return (HANDLER, "at_once", "starts", "reason")
        return ("subject_shown", "rules", "at_once", "starts", "reason", "since", "by")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """The form of a stored row does not ask for the handler."""
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.user = request.user
        if obj is not None:
            form.base_fields.pop(HANDLER, None)
        return form

    def has_add_permission(self, request: HttpRequest) -> bool:
        return Viewer.of(request).may_pause_work

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return Viewer.of(request).may_pause_work and (obj is None or not refusal(request.user, obj))

    has_delete_permission = has_change_permission

    def save_model(self, request: HttpRequest, obj: LoweredLimit, form: Any, change: bool) -> None:
        if not change:
            obj.lowered_at, obj.lowered_by = clock.now(), request.user.get_username()
        super().save_model(request, obj, form, change)

    def edits_of(self, form: Any) -> list[Change]:
        """The changed fields. Of a new row, the entry names the handler."""
        edits = [edit for edit in super().edits_of(form) if edit.name != HANDLER]
        return edits if form.initial else [Change("name", None, str(form.instance)), *edits]

    @admin.display(description=_("handler"))
    def subject_shown(self, row: LoweredLimit) -> str:
        return str(row)

    @admin.display(description=_("since"))
    def since(self, row: LoweredLimit) -> str:
        return time_with_relative(row.lowered_at)

    @admin.display(description=_("lowered by"))
    def by(self, row: LoweredLimit) -> str:
        return visible_text(row.lowered_by, 150)

    @admin.display(description=_("limit of the code"))
    def rules(self, row: LoweredLimit) -> str:
        return rules_in_words(row.type, row.name) or EMPTY
