"""The rows of an action on a list that the user may act on."""

from __future__ import annotations

from typing import TypeVar

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.db import models
from django.http import HttpRequest
from django.utils.translation import ngettext

Row = TypeVar("Row", bound=models.Model)


def allowed_only(
    model_admin: ModelAdmin, request: HttpRequest, queryset: models.QuerySet[Row], refused: models.Q | None
) -> models.QuerySet[Row]:
    """The rows without those whose code asks for a permission that the user lacks. The user is told how many these are.

    Args:
        refused: the condition on these rows, from `handlers.permission`; None if there are none.
    """
    if refused is None:
        return queryset
    if left_out := queryset.filter(refused).order_by().count():
        said = ngettext(
            "%(count)d of them is left out: its code asks for a permission that you lack.",
            "%(count)d of them are left out: their code asks for a permission that you lack.",
            left_out,
        )
        model_admin.message_user(request, said % {"count": left_out}, messages.WARNING)
    return queryset.exclude(refused)
