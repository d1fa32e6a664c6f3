"""The pages of alerts. The process that evaluates the rules writes the rows; users acknowledge and mute them."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from scheduling.admin.alerts.actions import AlertActions
from scheduling.admin.alerts.columns import AlertColumns
from scheduling.admin.alerts.filters import ALL, OVER, AlertScheduleFilter, OpenFilter, SinceFilter
from scheduling.admin.alerts.how import how_to_be_told
from scheduling.admin.alerts.page import alert_page
from scheduling.admin.alerts.told import with_notices
from scheduling.admin.common.filter_bar import ListView, add_notes
from scheduling.admin.common.filters import ChoiceFilter, GroupFilter
from scheduling.admin.common.read_only import ReadOnly
from scheduling.admin.common.viewer import Viewer
from scheduling.admin.ui.media import page_media
from scheduling.models import Alert
from scheduling.models.alert import URGENCY
from scheduling.models.visibility import visibility_of


@admin.register(Alert)
class AlertAdmin(AlertActions, AlertColumns, ReadOnly):
    """The list shows the open alerts first of all, the most urgent on top."""

    list_display = ("severity_shown", "what", "seen_shown", "since", "told", "acknowledged")
    list_display_links = ("what",)
    list_filter = (
        OpenFilter, ("severity", ChoiceFilter), ("kind", ChoiceFilter), AlertScheduleFilter, SinceFilter,
        ("group", GroupFilter),
    )  # fmt: skip
    list_views = (
        ListView(_("Open"), {}), ListView(_("Over"), {"state": OVER}), ListView(_("All"), {"state": ALL}),
    )  # fmt: skip
    sortable_by = ()
    search_fields = ("subject", "rule_name")
    search_help_text = _("Subject or rule")
    actions = ("acknowledge_selected", "take_back_selected", "mute_selected", "unmute_selected")
    no_rows = _("No alert is open. An alert begins when a rule finds something, and it is over when that is gone.")

    @property
    def media(self) -> forms.Media:
        return super().media + page_media(sheets=("scheduler",))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Alert]:
        visible = visibility_of(request.user)
        found: QuerySet[Alert] = super().get_queryset(request)
        return with_notices(visible.only(found), visible)

    def get_ordering(self, request: HttpRequest) -> Any:
        """The open alerts are few, so they are sorted by severity. All others are in the order of an index."""
        return ("-id",) if request.GET.get("state") in (OVER, ALL) else (URGENCY.desc(), "-id")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        add_notes(request, how_to_be_told(Viewer.of(request)))
        return super().changelist_view(request, extra_context)

    @method_decorator(require_safe)
    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The alert's page, read-only."""
        return self.with_row(request, object_id, self._page, extra_context or {})

    def _page(self, request: HttpRequest, row: Alert, extra_context: dict[str, Any]) -> HttpResponse:
        page = alert_page(row, Viewer.of(request), self.has_acknowledge_permission(request))
        context = {"media": self.media, **page, **extra_context}
        return self.page_response(request, "admin/scheduling/alert/page.html", **context)
