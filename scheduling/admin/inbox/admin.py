"""The failed inbox: executions that failed permanently and wait for an operator's decision."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.contrib.admin.widgets import AutocompleteSelect
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils import timezone as clock
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from scheduling.admin.common.broker import open_broker
from scheduling.admin.common.filters import ChoiceFilter, SchedulerFilter
from scheduling.admin.common.read_only import ReadOnly
from scheduling.admin.common.run_search import RunSearch
from scheduling.admin.executions.search import ExecutionList
from scheduling.admin.inbox import view
from scheduling.admin.inbox.actions import InboxActions
from scheduling.admin.inbox.columns import InboxColumns
from scheduling.admin.inbox.confirmation import list_behind
from scheduling.admin.inbox.edit_republish import EditRepublish
from scheduling.admin.inbox.filters import AgeFilter, ErrorClassFilter, FingerprintFilter, GroupedFilter, TargetFilter
from scheduling.admin.inbox.groups import groups_of
from scheduling.admin.inbox.single import SingleFailure
from scheduling.admin.replays.rows import lines
from scheduling.admin.ui.links import execution_url
from scheduling.admin.ui.media import page_media
from scheduling.admin.ui.paginators import InboxPaginator
from scheduling.admin.ui.parted_pages import InboxInParts, parted
from scheduling.admin.ui.text import first_line
from scheduling.admin.ui.times import relative_time
from scheduling.broker import Broker, BrokerError
from scheduling.conf import get_conf
from scheduling.core.lifecycle import State
from scheduling.inbox import sync
from scheduling.models import FailedExecution, newest
from scheduling.models.newest import in_parts, newest_keys, oldest_failure
from scheduling.models.visibility import Visibility, visibility_of


class InboxList(ExecutionList):
    """Also loads the error messages, because the inbox shows the first line of each error."""

    deferred = ("params", "reason")
    durations = False


@admin.register(FailedExecution)
class FailedAdmin(InboxColumns, EditRepublish, SingleFailure, InboxActions, RunSearch, ReadOnly):
    """The rows in state failed. Each row has a button that republishes it."""

    list_filter = (
        FingerprintFilter,
        ("type", ChoiceFilter),
        TargetFilter,
        SchedulerFilter,
        ErrorClassFilter,
        AgeFilter,
        GroupedFilter,
    )
    list_select_related = ()
    search_fields = ("id",)  # Django shows a search box only if there are some; `RunSearch` does the search
    numbers_are_ids = False  # an order's number in a message is worth finding
    search_limit = 10_000
    """How many of the newest failures a search reads.

    The limit keeps a search fast. The search must read the message of each failure, and the failures are spread over a
    table of millions of rows.
    """
    search_help_text = gettext_lazy("Search error, target, schedule, id")
    paginator = InboxPaginator
    actions = ("republish_selected", "discard_selected")
    no_rows = gettext_lazy("Failed runs appear here. They stay until they are republished or discarded.")

    @property
    def media(self) -> Any:
        search = AutocompleteSelect(FailedExecution._meta.get_field("scheduler"), self.admin_site).media
        return super().media + search + page_media(scripts=("swap", "poll"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[FailedExecution]:
        visible = visibility_of(request.user)
        return visible.with_schedules(visible.only(super().get_queryset(request)).filter(state=State.FAILED.value))

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ExecutionList]:
        return InboxList

    def get_paginator(self, request: HttpRequest, *args: Any, **options: Any) -> Paginator:
        whole = super().get_paginator(request, *args, **options)
        return parted(whole, InboxInParts, visibility_of(request.user), False, whole.per_page)

    def bounded(self, request: HttpRequest, queryset: QuerySet) -> tuple[Q, str]:
        """The newest failures that the filters leave."""
        limit, visible = self.search_limit, visibility_of(request.user)
        if visible.is_limited:
            keys = newest_keys(queryset.prefetch_related(None), visible, limit - 1, limit + 1, False)
        else:
            keys = list(queryset.order_by("-pk").values_list("pk", flat=True)[limit - 1 : limit + 1])
        if len(keys) < 2:
            return Q(), ""
        said = _("Only the newest %(count)s failures were searched. Choose a filter to search older ones.")
        return Q(pk__gte=keys[0]), said % {"count": number_format(self.search_limit, force_grouping=True)}

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Adds a summary above the list.

        The summary has the number of rows, the age of the oldest row, and the number of messages in the failed queue.
        """
        if (filtered := self.with_filters(request)) is not None:
            return filtered
        summary: list[str] = []
        if request.method == "GET" and self.has_view_permission(request):
            with open_broker() as broker:
                said = _broker_says(broker)  # first, because it makes rows that `_summary` counts
                summary = [*self._summary(visibility_of(request.user)), *said]
        extra = {"summary": summary, "module_name": _("failed executions"), **(extra_context or {})}
        response = super().changelist_view(request, extra)
        if isinstance(response, HttpResponseRedirect) and response.url == request.get_full_path():
            return HttpResponseRedirect(list_behind(request))  # Django redirects to the same URL after an action
        if request.method == "GET" and isinstance(response, TemplateResponse) and response.context_data is not None:
            response.context_data.update(self._view(request, response.context_data.get("cl")))
        return response

    def _view(self, request: HttpRequest, changelist: ChangeList | None) -> dict[str, Any]:
        """The template context of the plain list or of the view by error group.

        The context includes the links between these two views. The links keep the filters and the search.
        """
        if changelist is None:
            return {}
        replays = lines(request, clock.now())
        grouped = view.chosen(request)
        groups = groups_of(request, changelist, clock.now()) if grouped is not False else None
        if grouped is None and groups is not None:
            grouped = any(group.count > 1 for group in groups.rows)
        context = {
            "replays": replays,
            "replays_open": any(replay.is_open for replay in replays),
            "grouped": grouped,
            "flat_query": changelist.get_query_string({view.PARAMETER: view.EACH}, [view.PARAMETER]),
            "group_query": changelist.get_query_string(
                {view.PARAMETER: view.BY_ERROR}, [view.PARAMETER, "fingerprint"]
            ),
        }
        if grouped:
            context |= {
                "groups": groups,
                "may_republish": self.has_republish_permission(request),
                "may_discard": self.has_discard_permission(request),
            }
        return context

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Redirects to the execution's page, because an execution in the inbox has no page of its own."""
        return HttpResponseRedirect(execution_url(object_id))

    def _summary(self, visible: Visibility) -> list[str]:
        failed = FailedExecution.objects.filter(state=State.FAILED.value)
        count = sum(part.count() for part in in_parts(failed, visible))
        if not count:
            return [_("Inbox empty.")]
        text = ngettext(
            "%(count)d failed execution waits for a decision.",
            "%(count)d failed executions wait for a decision.",
            count,
        )
        sentences = [text % {"count": count}]
        if since := oldest_failure(visible):
            exact = count <= newest.SCANNED_FAILURES
            said = _("The oldest failed %(age)s.") if exact else _("The oldest failed %(age)s or earlier.")
            sentences.append(said % {"age": relative_time(since, clock.now())})
        return sentences


_seen: dict[str, sync.QueueAndRows] = {}
"""Maps a broker's URL to two counts: the messages of the failed queue, and the parked rows of the inbox.

The counts are from the last sync of this process in which nothing had to be corrected.
"""


def _broker_says(broker: Broker) -> list[str]:
    """Create the missing rows for messages of the failed queue, and return sentences about the queue.

    If the counts have not changed since the last sync, the messages are counted but not read. If the broker cannot be
    reached, the page shows the error instead of the number of messages. After an error, this function does not ask the
    broker again, because every attempt may take seconds to time out.
    """
    if not broker.has_failed_queue:
        return []
    try:
        url = get_conf().broker_url
        done = sync.sync(broker, clock.now(), only_if_changed=True, seen=_seen.get(url))
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
