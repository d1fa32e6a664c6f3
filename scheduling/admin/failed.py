"""The failed inbox: what did not succeed and waits for somebody's decision."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.contrib.admin.widgets import AutocompleteSelect
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone as clock
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from scheduling import parked
from scheduling.admin import oldest
from scheduling.admin.edit_republish import EditRepublish
from scheduling.admin.error_groups import groups_of
from scheduling.admin.executions import SCHEDULER, ExecutionList
from scheduling.admin.filters import SchedulerFilter, TypeFilter
from scheduling.admin.inbox_actions import InboxActions
from scheduling.admin.inbox_ask import list_behind
from scheduling.admin.inbox_filters import (
    AgeFilter,
    ErrorClassFilter,
    FingerprintFilter,
    GroupedFilter,
    TargetFilter,
)
from scheduling.admin.paging import InboxPaginator
from scheduling.admin.parts import EMPTY, MEDIA, ago, first_line, relative, shown, stamp
from scheduling.admin.readonly import ReadOnly
from scheduling.admin.replay_lines import lines
from scheduling.admin.transport import transport
from scheduling.broker import Broker, BrokerError
from scheduling.conf import get_conf
from scheduling.core.lifecycle import State
from scheduling.models import FailedExecution

SEARCHED = 10_000
"""Failures that a search looks through, the newest: their messages lie scattered over a table of millions."""


class InboxList(ExecutionList):
    """The list shows the error's first line, so messages are fetched here."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet:
        """Without the parameters only."""
        return super().get_queryset(request, exclude_parameters).defer(None).defer("params", "reason")


@admin.register(FailedExecution)
class FailedAdmin(EditRepublish, InboxActions, ReadOnly):
    """Rows in state failed; a row leads to its execution's page."""

    list_display = ("failed_at", "target", "schedule", "attempts_column", "error", "age")
    list_display_links = None
    list_filter = (
        FingerprintFilter,
        TypeFilter,
        TargetFilter,
        SchedulerFilter,
        ErrorClassFilter,
        AgeFilter,
        GroupedFilter,
    )
    list_select_related = ()
    search_fields = ("error_message", "target_name", "=id")
    search_help_text = gettext_lazy(
        "An id, or a part of an error's message or of a target's name, among the newest 10,000 failures "
        "that the filters leave."
    )
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = InboxPaginator
    ordering = ("-id",)
    list_per_page = 50
    actions = ("republish_selected", "discard_selected")

    @property
    def media(self) -> Any:
        """The stock scripts, our style sheet, the poller for the replays, and what the filter by schedule needs."""
        # Deferred: they stand in the head, and look for what stands in the body.
        scripts = [forms.Script(f"scheduling/{name}.js", defer=True) for name in ("swap", "poll")]
        search = AutocompleteSelect(FailedExecution._meta.get_field("scheduler"), self.admin_site).media
        return super().media + search + MEDIA + forms.Media(js=scripts)  # type: ignore[arg-type]  # the stubs know only paths

    def get_queryset(self, request: HttpRequest) -> QuerySet[FailedExecution]:
        """Only what failed, the schedules in a query of their own."""
        rows = super().get_queryset(request).filter(state=State.FAILED.value)
        return rows.prefetch_related("scheduler", *SCHEDULER)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ExecutionList]:
        """With messages, without parameters."""
        return InboxList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[FailedExecution], search_term: str
    ) -> tuple[QuerySet[FailedExecution], bool]:
        """A part of the message or target; a number is an id as well, and an error group is found by itself."""
        term = search_term.strip()
        if not term:
            return queryset, False
        oldest = queryset.order_by("-pk").values_list("pk", flat=True)[SEARCHED : SEARCHED + 1]
        if not term.isdecimal() and (last := list(oldest)):
            queryset = queryset.filter(pk__gt=last[0])
        found = Q(error_message__icontains=term) | Q(target_name__icontains=term) | Q(fingerprint=term.lower())
        if term.isascii() and term.isdecimal() and len(term) < 19:
            found |= Q(pk=int(term))
        return queryset.filter(found), False

    @admin.display(description=gettext_lazy("Failed at"), ordering="finished_at")
    def failed_at(self, row: FailedExecution) -> str:
        """Leads to the execution."""
        address = reverse("admin:scheduling_schedulerexecution_change", args=[row.pk])
        return format_html('<a href="{}">{}</a>', address, stamp(row.finished_at))

    @admin.display(description=gettext_lazy("Target"), ordering="target_name")
    def target(self, row: FailedExecution) -> str:
        """Name and kind."""
        name = shown(row.target_name, 80) or EMPTY
        return format_html('{}<span class="sch-quiet sch-below">{}</span>', name, row.type)

    @admin.display(description=gettext_lazy("Schedule"))
    def schedule(self, row: FailedExecution) -> str:
        """Leads to the schedule."""
        if row.scheduler is None:
            return EMPTY
        address = reverse("admin:scheduling_scheduler_change", args=[row.scheduler_id])
        return format_html('<a href="{}">{}</a>', address, shown(row.scheduler, 60))

    @admin.display(description=gettext_lazy("Attempts"))
    def attempts_column(self, row: FailedExecution) -> int:
        """How many there were."""
        return row.attempt

    @admin.display(description=gettext_lazy("Error"))
    def error(self, row: FailedExecution) -> str:
        """Class, and the message's first line."""
        return format_html(
            '<span class="sch-error">{}</span><span class="sch-below sch-message">{}</span>',
            shown(row.error_class, 80),
            first_line(row.error_message),
        )

    @admin.display(description=gettext_lazy("Age"))
    def age(self, row: FailedExecution) -> str:
        """Since it failed."""
        return ago(row.finished_at, getattr(row, "looked_at", None))

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Above the list: how many, since when, and what the broker holds."""
        summary: list[str] = []
        if request.method == "GET" and self.has_view_permission(request):
            with transport() as broker:
                said = _broker_says(broker)  # first: what it brings is counted below
                summary = [*self._summary(), *said]
        extra = {"summary": summary, "module_name": _("failed executions"), **(extra_context or {})}
        response = super().changelist_view(request, extra)
        if isinstance(response, HttpResponseRedirect) and response.url == request.get_full_path():
            return HttpResponseRedirect(list_behind(request))  # an action is done
        if request.method == "GET" and isinstance(response, TemplateResponse) and response.context_data is not None:
            response.context_data.update(self._view(request, response.context_data.get("cl")))
        return response

    def _view(self, request: HttpRequest, changelist: ChangeList | None) -> dict[str, Any]:
        """Which of the two views it is, and the way to the other; filters and search go along."""
        if changelist is None:
            return {}
        grouped = request.GET.get("group") == "error"
        replays = lines(request, clock.now())
        context = {
            "replays": replays,
            "replays_open": any(each.is_open for each in replays),
            "grouped": grouped,
            "flat_query": changelist.get_query_string({}, ["group"]),
            "group_query": changelist.get_query_string({"group": "error"}, ["group", "fingerprint"]),
        }
        if grouped:
            context |= {
                "groups": groups_of(changelist, clock.now()),
                "may_republish": self.has_republish_permission(request),
                "may_discard": self.has_discard_permission(request),
            }
        return context

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """An execution has one page, whichever list led there."""
        return HttpResponseRedirect(reverse("admin:scheduling_schedulerexecution_change", args=[object_id]))

    def _summary(self) -> list[str]:
        failed = FailedExecution.objects.filter(state=State.FAILED.value)
        count = failed.count()
        if not count:
            return [_("Nothing waits here: whatever failed was handled.")]
        text = ngettext(
            "%(count)d failed execution waits for a decision.",
            "%(count)d failed executions wait for a decision.",
            count,
        )
        sentences = [text % {"count": count}]
        if since := oldest.oldest_failure():
            said = (
                _("The oldest failed %(age)s.") if count <= oldest.FIRST else _("The oldest failed %(age)s or earlier.")
            )
            sentences.append(said % {"age": relative(since, clock.now())})
        return sentences


_seen: dict[str, parked.Standing] = {}
"""By broker, how queue and rows stood when this process last read the queue and found nothing to mend."""


def _broker_says(broker: Broker) -> list[str]:
    """Give rows to messages of the failed queue that have none, and say how many it holds; a refresh only counts them.

    The page works without the broker, and says so: asked once, for one that is away may take its time to be so.
    """
    if not broker.parks:
        return []
    try:
        url = get_conf().broker_url
        done = parked.sync(broker, clock.now(), only_if_changed=True, seen=_seen.get(url))
        if done.standing and not (done.busy or done.rows or done.parked or done.removed):
            _seen[url] = done.standing
        count = broker.counts().failed
    except BrokerError as error:
        return [_("The broker cannot be asked for its failed queue: %s") % first_line(str(error))]
    text = ngettext(
        "The broker's failed queue holds %(count)d message.",
        "The broker's failed queue holds %(count)d messages.",
        count or 0,
    )
    return [text % {"count": count or 0}]
