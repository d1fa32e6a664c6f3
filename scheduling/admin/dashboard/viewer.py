"""Viewer: who looks, when, and where their links may lead."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, PermissionsMixin
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone as clock


@dataclass
class Viewer:
    """One request's reader. An address that they may not open is empty, and is shown as plain text."""

    user: Any
    now: datetime
    zone: tzinfo
    page: str = "1"
    _may: dict[str, bool] = field(default_factory=dict)

    @classmethod
    def of(cls, request: HttpRequest) -> Viewer:
        """Who asks, now, in the site's display zone."""
        user: AbstractBaseUser | AnonymousUser | PermissionsMixin = request.user
        return cls(user, clock.now(), clock.get_current_timezone(), request.GET.get("p", "1"))

    def may(self, codename: str) -> bool:
        """Whether they have a permission of this app."""
        if codename not in self._may:
            self._may[codename] = bool(self.user.has_perm(f"scheduling.{codename}"))
        return self._may[codename]

    def sees(self, model: str) -> bool:
        """Whether they may open a model's pages: an editor may also without the permission to view."""
        return self.may(f"view_{model}") or self.may(f"change_{model}")

    @property
    def may_run(self) -> bool:
        """Whether a run-now button would do anything for them."""
        return self.may("run_scheduler") and self.sees("scheduler")

    @property
    def may_pause(self) -> bool:
        """Whether a pause button would."""
        return (self.may("pause_scheduler") or self.may("change_scheduler")) and self.sees("scheduler")

    @property
    def may_cancel(self) -> bool:
        """Whether a cancel link would."""
        return self.may("cancel_execution") and self.sees("schedulerexecution")

    def list_of(self, model: str, **filters: object) -> str:
        """A model's list, filtered."""
        if not self.sees(model):
            return ""
        address = reverse(f"admin:scheduling_{model}_changelist")
        return f"{address}?{urlencode(filters)}" if filters else address

    @property
    def page_query(self) -> str:
        """The page of the schedules' table that they look at, as a query."""
        return urlencode({"p": self.page})

    def execution(self, pk: int) -> str:
        """An execution's page."""
        return _at(self._execution, pk)

    def scheduler(self, pk: int | None) -> str:
        """A schedule's page."""
        return _at(self._scheduler, pk) if pk is not None else ""

    # A row's address is the pattern with its key: looking it up anew for each of two thousand bars
    # would take longer than drawing them.
    @cached_property
    def _execution(self) -> str:
        return self._pattern("schedulerexecution")

    @cached_property
    def _scheduler(self) -> str:
        return self._pattern("scheduler")

    def _pattern(self, model: str) -> str:
        return reverse(f"admin:scheduling_{model}_change", args=[0]) if self.sees(model) else ""


def _at(pattern: str, pk: int) -> str:
    head, _zero, tail = pattern.rpartition("/0/")
    return f"{head}/{pk}/{tail}" if pattern else ""
