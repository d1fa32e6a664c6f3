"""The rows of an action on a list: which of them the user may act on, and how they are read in chunks."""

from __future__ import annotations

import time
from collections.abc import Iterator
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


class RequestLimits:
    """Limits for a request that works on many rows."""

    chunk_rows = 500
    seconds = 20.0
    """The request stops its work after this time. Many web servers end a request after 30 s, so the limit is lower.

    The remaining rows stay unchanged, and a button of the message continues the action.
    """


def in_chunks(queryset: models.QuerySet[Row]) -> Iterator[list[Row]]:
    """Yields lists of rows in the order of their primary keys, until no row is left or the time limit is reached.

    A separate query reads each chunk and begins after the last key of the previous chunk. So no row is missed or read
    twice, even if the action changes rows so that they no longer match the queryset.
    """
    size, end = RequestLimits.chunk_rows, time.monotonic() + RequestLimits.seconds
    last = 0
    while True:
        chunk = list(queryset.order_by("pk").filter(pk__gt=last)[:size])
        if chunk:
            yield chunk
            last = chunk[-1].pk
        if len(chunk) < size or time.monotonic() > end:
            return
