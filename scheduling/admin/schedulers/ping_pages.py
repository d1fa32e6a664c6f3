"""The ping URL on the pages of a schedule: what may be shown of it, and what reports of errors leave out."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables

from scheduling.admin.schedulers.ping_fields import PING_URL, REMOVE_PING_URL
from scheduling.admin.ui.times import EMPTY
from scheduling.core.text import visible_text
from scheduling.models import Scheduler
from scheduling.pings.address import shown

MONITOR: Any = (
    gettext_lazy("Monitor"),
    {
        "fields": (PING_URL, REMOVE_PING_URL),
        "description": gettext_lazy("A monitor outside that tells a person when a run fails or stays away."),
    },
)
"""The group of fields in the form."""


class PingPages(admin.ModelAdmin):
    """Keeps the ping URL secret."""

    @method_decorator(sensitive_post_parameters(PING_URL))
    @method_decorator(sensitive_variables())
    def changeform_view(self, *args: Any, **kwargs: Any) -> HttpResponse:
        """Django's reports of errors leave out the posted URL, and all variables of functions called from here."""
        return super().changeform_view(*args, **kwargs)

    def get_fieldsets(self, request: HttpRequest, obj: Scheduler | None = None) -> Any:
        """Leaves out the box that removes the URL where nothing can be changed."""
        found = super().get_fieldsets(request, obj)
        if obj is None or self.has_change_permission(request, obj):
            return found
        return [
            (title, {**options, "fields": tuple(name for name in options["fields"] if name != REMOVE_PING_URL)})
            for title, options in found
        ]

    @admin.display(description=gettext_lazy("Ping URL"))
    def ping_url_shown(self, row: Scheduler) -> str:
        """The part of the URL that is no secret."""
        return visible_text(shown(row.ping_url), 120) or EMPTY


def stored_column(name: str) -> str:
    """The column that a field of the form stands for."""
    return "ping_url" if name == PING_URL else name
