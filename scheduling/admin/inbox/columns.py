"""The columns of the failed inbox. The last column has the buttons of each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext

from scheduling.admin.common.next_page import with_next
from scheduling.admin.common.pages import Pages
from scheduling.admin.executions.page import may
from scheduling.admin.ui.links import admin_url, execution_url, link, scheduler_url
from scheduling.admin.ui.menu import Entry, button, menu
from scheduling.admin.ui.schedules import zone_of
from scheduling.admin.ui.targets import execution_target
from scheduling.admin.ui.text import first_line
from scheduling.admin.ui.times import EMPTY, relative_time_tag, time_tag
from scheduling.core.known_sentences import in_language
from scheduling.core.text import visible_text
from scheduling.models import FailedExecution
from scheduling.models.labels import TYPES


class InboxColumns(Pages):
    """The columns. The error is the link to the execution's page."""

    list_display = ("error", "target", "schedule", "failed_at")
    list_display_links = None

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Adds the column of buttons. Its links lead back to this list, with its filters and its page."""
        return [*super().get_list_display(request), buttons_of(request)]

    @admin.display(description=gettext_lazy("Failed at"), ordering="finished_at")
    def failed_at(self, row: FailedExecution) -> str:
        attempts = ngettext("%(count)d attempt", "%(count)d attempts", row.attempt) % {"count": row.attempt}
        zone = zone_of(row.scheduler)
        age = relative_time_tag(row.finished_at, getattr(row, "looked_at", None), zone)
        return format_html('{}<span class="sch-below">{}, {}</span>', time_tag(row.finished_at, zone), age, attempts)

    @admin.display(description=gettext_lazy("Target"), ordering="target_name")
    def target(self, row: FailedExecution) -> str:
        return format_html(
            '{}<span class="sch-quiet sch-below">{}</span>', execution_target(row), TYPES.get(row.type, row.type)
        )

    @admin.display(description=gettext_lazy("Schedule"))
    def schedule(self, row: FailedExecution) -> str:
        if row.scheduler is None:
            return EMPTY
        return link(scheduler_url(row.scheduler_id), visible_text(row.scheduler, 60))

    @admin.display(description=gettext_lazy("Error"))
    def error(self, row: FailedExecution) -> str:
        return format_html(
            '<a class="sch-error" href="{}">{}</a><span class="sch-below sch-message">{}</span>',
            execution_url(row.pk),
            visible_text(row.error_class, 80) or EMPTY,
            first_line(in_language(row.error_message)),
        )


def buttons_of(request: HttpRequest) -> Callable[[FailedExecution], SafeString]:
    """The column of buttons for the user of this request."""

    @admin.display(description=gettext_lazy("Actions"))
    def buttons(row: FailedExecution) -> SafeString:
        return row_buttons(request, row)

    return buttons


def row_buttons(request: HttpRequest, row: FailedExecution) -> SafeString:
    """The button "Republish", and a menu with all else that the user may do with this failure."""
    allowed = may(request, row)

    def address(page: str) -> str:
        return with_next(admin_url(f"scheduling_failedexecution_{page}", row.pk), request)

    entries = [Entry(pgettext("action", "Open"), execution_url(row.pk), _("Output, attempts and the whole error."))]
    if allowed["edit"]:
        entries.append(
            Entry(_("Edit and republish"), address("edit"), _("Queue this failed run again, with other parameters."))
        )
    if allowed["discard"]:
        entries.append(
            Entry(
                _("Discard"),
                address("discard"),
                _("Remove it from the inbox without running it again. You will be asked for a reason."),
            )
        )
    about = _("execution %(id)s") % {"id": row.pk}
    first = button(_("Republish"), address("republish"), about) if allowed["republish"] and row.type else ""
    return format_html('<span class="sch-buttons">{}{}</span>', first, menu(about, entries))
