"""Viewer: the user of a request, the present time, and the links that the user may follow."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from functools import cached_property
from typing import Any

from django.http import HttpRequest
from django.utils import timezone as clock

from scheduling.admin.ui.links import admin_url, list_url
from scheduling.models.visibility import Visibility, visibility_of
from scheduling.monitoring.findings.present import Present


@dataclass
class Viewer:
    """The user of one request.

    The methods return an empty URL for a page that the user may not open. Templates then show plain text, not a link.
    """

    user: Any
    now: datetime
    zone: tzinfo
    request: HttpRequest | None = field(default=None, repr=False)
    _patterns: dict[str, str] = field(default_factory=dict)

    @cached_property
    def present(self) -> Present:
        """The state of the installation. The parts of the dashboard share it."""
        return Present(self.now, self.visible)

    @cached_property
    def visible(self) -> Visibility:
        """The schedules and executions that the user sees."""
        return visibility_of(self.user)

    @classmethod
    def of(cls, request: HttpRequest) -> Viewer:
        """The viewer with the request's user, the present time, and the site's time zone."""
        return cls(request.user, clock.now(), clock.get_current_timezone(), request)

    @cached_property
    def page(self) -> str:
        """The number of the page in the address.

        It is read only where it is needed: the error page asks for the user's permissions, too, and Django refuses to
        read an address with too many parameters.
        """
        return "1" if self.request is None else self.request.GET.get("p", "1")

    def may(self, codename: str) -> bool:
        """Whether the user has this permission of the app `scheduling`."""
        return bool(self.user.has_perm(f"scheduling.{codename}"))

    def sees(self, model: str) -> bool:
        """Whether the user may open a model's pages. The permission to view or the permission to change is enough."""
        return self.may(f"view_{model}") or self.may(f"change_{model}")

    @property
    def may_run(self) -> bool:
        """Whether the user may use the button "Run now"."""
        return self.may("run_scheduler") and self.sees("scheduler")

    @property
    def may_pause(self) -> bool:
        """Whether the user may use the button "Pause"."""
        return (self.may("pause_scheduler") or self.may("change_scheduler")) and self.sees("scheduler")

    @property
    def may_pause_work(self) -> bool:
        """Whether the user may pause handlers, queues and the whole site. That concerns the runs of all groups."""
        return self.may("pause_work") and not self.visible.is_limited

    @property
    def may_cancel(self) -> bool:
        """Whether the user may use the link "Cancel"."""
        return self.may("cancel_execution") and self.sees("schedulerexecution")

    @property
    def may_republish(self) -> bool:
        """Whether the user may republish failures of the inbox."""
        return self.may("republish_failedexecution") and self.sees("failedexecution")

    def list_of(self, model: str, **filters: object) -> str:
        """The URL of a model's list with these filters."""
        return list_url(model, **filters) if self.sees(model) else ""

    def execution(self, pk: int) -> str:
        """The URL of an execution's page."""
        return self._page("schedulerexecution", pk)

    def scheduler(self, pk: int | None) -> str:
        """The URL of a schedule's page."""
        return self._page("scheduler", pk) if pk is not None else ""

    def alert(self, pk: int) -> str:
        """The URL of an alert's page."""
        return self._page("alert", pk)

    def calendar(self, pk: int) -> str:
        """The URL of a calendar's page."""
        return self._page("calendar", pk)

    def _page(self, model: str, pk: int) -> str:
        # The URL for the key 0 is computed once for each model. Then the row's key replaces the 0. The dashboard draws
        # two thousand bars. A call of `reverse` for every bar would take longer than drawing all bars.
        if model not in self._patterns:
            self._patterns[model] = admin_url(f"scheduling_{model}_change", 0) if self.sees(model) else ""
        head, _zero, tail = self._patterns[model].rpartition("/0/")
        return f"{head}/{pk}/{tail}" if tail else ""
