"""Events: what code has planned for a topic. Each is an execution, whose page shows the rest."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import NoReverseMatch
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduling.admin.common.filters import ColumnFilter
from scheduling.admin.common.read_only import ReadOnly
from scheduling.admin.common.viewer import Viewer
from scheduling.admin.params.json_field import json_block
from scheduling.admin.ui.badges import state_badge
from scheduling.admin.ui.links import admin_url, execution_url
from scheduling.admin.ui.paginators import CappedPaginator
from scheduling.admin.ui.text import is_number, searched
from scheduling.admin.ui.times import time_with_relative
from scheduling.core.lifecycle import OPEN_STATES
from scheduling.core.text import visible_text
from scheduling.models import Event
from scheduling.models.visibility import visibility_of

MOST_TOPICS = 50
"""So many topics stand beside the list. The search finds all."""

LONGEST_TEXT = 120


class TopicFilter(ColumnFilter):
    """Filters by topic. Each topic is found by one look at the index, however many events there are."""

    title, parameter_name = gettext_lazy("topic"), "topic"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, Any]]:
        rows = visibility_of(request.user).of_executions(Event.objects.all()).order_by("topic")
        found: list[tuple[str, Any]] = []
        last = ""
        for _number in range(MOST_TOPICS):
            topic = rows.filter(topic__gt=last).values_list("topic", flat=True).first()
            if not isinstance(topic, str) or topic == last:  # SQLite stores any type
                break
            found.append((topic, visible_text(topic, LONGEST_TEXT)))
            last = topic
        return found


@admin.register(Event)
class EventAdmin(ReadOnly):
    """Events are made by code (`scheduling.api.schedule_at`), so there is no form to make one."""

    list_display = ("event", "topic_shown", "state", "due", "metadata_short")
    list_display_links = ("event",)
    list_filter = (TopicFilter,)
    search_fields = ("topic",)
    search_help_text = gettext_lazy("Search topic, customer=42")
    readonly_fields = ("topic_shown", "state", "due", "run", "cancel_link", "metadata_shown")
    ordering = ("-pk",)
    paginator = CappedPaginator
    no_rows = gettext_lazy("An event is planned by code: scheduling.api.schedule_at. None is on record.")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Event]:
        # As in the list of artefacts, select_related would be slow on MariaDB.
        return visibility_of(request.user).of_executions(super().get_queryset(request)).prefetch_related("execution")

    def get_fields(self, request: HttpRequest, obj: Event | None = None) -> tuple[str, ...]:
        """The link to cancel is for users who may."""
        may_cancel = Viewer.of(request).may_cancel
        return tuple(name for name in self.readonly_fields if may_cancel or name != "cancel_link")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Event], search_term: str
    ) -> tuple[QuerySet[Event], bool]:
        """Searches by id, by the beginning of the topic, or by an entry of the metadata, such as `customer=42`."""
        term = searched(search_term)
        if not term:
            return queryset, False
        if is_number(term):
            return queryset.filter(pk=int(term)), False
        name, sign, value = term.partition("=")
        if not sign:
            return queryset.filter(topic__istartswith=term), False
        if not name.isidentifier() or "__" in name:
            return queryset.none(), False  # it would be a path into the JSON, or no key of one
        same = Q(**{f"metadata__{name}": value})
        if value in ("true", "false"):
            same |= Q(**{f"metadata__{name}": value == "true"})
        elif is_number(value):
            same |= Q(**{f"metadata__{name}": int(value)})
        return queryset.filter(same), False

    @admin.display(description=gettext_lazy("event"), ordering="pk")
    def event(self, row: Event) -> str:
        return str(row.pk)

    @admin.display(description=gettext_lazy("topic"), ordering="topic")
    def topic_shown(self, row: Event) -> str:
        return visible_text(row.topic, LONGEST_TEXT)

    @admin.display(description=gettext_lazy("state"))
    def state(self, row: Event) -> SafeString:
        return state_badge(row.execution.state)

    @admin.display(description=gettext_lazy("due"))
    def due(self, row: Event) -> str:
        return time_with_relative(row.execution.scheduled_at)

    @admin.display(description=gettext_lazy("metadata"))
    def metadata_short(self, row: Event) -> str:
        if not isinstance(row.metadata, dict):
            return visible_text(row.metadata, LONGEST_TEXT)
        return visible_text(", ".join(f"{name}={value}" for name, value in sorted(row.metadata.items())), LONGEST_TEXT)

    @admin.display(description=gettext_lazy("metadata"))
    def metadata_shown(self, row: Event) -> SafeString:
        return json_block(row.metadata)

    @admin.display(description=gettext_lazy("execution"))
    def run(self, row: Event) -> SafeString | str:
        """The page of the execution, with the payload, the attempts and the output."""
        try:
            return format_html('<a href="{}">{}</a>', execution_url(row.pk), row.pk)
        except NoReverseMatch:
            return str(row.pk)

    @admin.display(description=gettext_lazy("cancel"))
    def cancel_link(self, row: Event) -> SafeString | str:
        if row.execution.state not in {str(state) for state in OPEN_STATES}:
            return _("This event has ended.")
        address = admin_url("scheduling_schedulerexecution_cancel", row.pk)
        return format_html('<a href="{}">{}</a>', address, _("Cancel this event"))
