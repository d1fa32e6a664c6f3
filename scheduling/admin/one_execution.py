"""What the pages about one execution share: finding it for who may, naming it, and the way back to it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from scheduling.admin.parts import EMPTY, shown, state_chip
from scheduling.admin.run_now import execution_link
from scheduling.models import SchedulerExecution


def seen(
    model_admin: admin.ModelAdmin, request: HttpRequest, object_id: str, permission: str
) -> SchedulerExecution | None:
    """The execution, None if there is none.

    Raises:
        PermissionDenied: without the permission, or without that to look at it.
    """
    if not request.user.has_perm(permission):
        raise PermissionDenied
    row: SchedulerExecution | None = model_admin.get_object(request, unquote(object_id))
    if not model_admin.has_view_permission(request, row):
        raise PermissionDenied
    return row


def address_of(row: SchedulerExecution) -> str:
    """Of its page."""
    return reverse("admin:scheduling_schedulerexecution_change", args=[row.pk])


def crumbs_of(row: SchedulerExecution) -> list[tuple[str, Any]]:
    """Its page, for the breadcrumbs of a page below it."""
    return [(address_of(row), _("Execution %(id)s") % {"id": row.pk})]


def facts_of(row: SchedulerExecution) -> list[tuple[str, Any]]:
    """What a page that asks says of it."""
    return [
        (_("Execution"), execution_link(row, str(row.pk))),
        (_("State"), state_chip(row.state)),
        (_("Target"), shown(row.target_name or row.type)),
        (_("Schedule"), shown(row.scheduler, 120) if row.scheduler is not None else EMPTY),
    ]
