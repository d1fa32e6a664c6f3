"""Paginators for a user who sees some groups only: each part of what the user sees is read on its own."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django.core.paginator import Page, Paginator
from django.db import models

from scheduling.admin.ui.paginators import CappedPaginator, InboxPaginator, OncePaginator
from scheduling.models.newest import in_parts, newest_keys
from scheduling.models.visibility import Visibility


class InParts(OncePaginator):
    """Reads keys with `models.newest`, and then the rows of the page. It is for lists in the order of their ids."""

    visible: Visibility
    any_state: bool

    @cached_property
    def few(self) -> list[int] | None:
        keys = self._keys(0, self.per_page + 1)
        return keys if len(keys) <= self.per_page else None

    def _number(self, rows: models.QuerySet) -> int:
        return sum(super(InParts, self)._number(part) for part in in_parts(rows, self.visible))

    def page(self, number: Any) -> Page:
        found = self.validate_number(number)
        top = found * self.per_page
        keys = self._keys(top - self.per_page, top)
        assert isinstance(self.object_list, models.QuerySet)  # noqa: S101 - callers have a queryset
        return Page(self.object_list.filter(pk__in=keys), found, self)

    def _keys(self, start: int, stop: int) -> list[int]:
        assert isinstance(self.object_list, models.QuerySet)  # noqa: S101 - callers have a queryset
        rows = self.object_list.prefetch_related(None)
        return newest_keys(rows, self.visible, start, stop, self.any_state)


class CappedInParts(InParts, CappedPaginator):
    """The paginator of the list of executions."""

    def _number(self, rows: models.QuerySet) -> int:
        # Without an order, because MariaDB would sort all rows of a part for the order by primary key.
        return sum(part.order_by()[: self.count_limit + 1].count() for part in in_parts(rows, self.visible))


class InboxInParts(InParts, InboxPaginator):
    """The paginator of the failed inbox."""


def parted(
    whole: Paginator, kind: type[InParts], visible: Visibility, any_state: bool, per_page: int, orphans: int = 0
) -> Paginator:
    """The paginator `whole`, or one of this kind if the user sees some groups only and the list is in order of ids.

    Args:
        any_state: whether no filter has chosen a state.
    """
    rows = whole.object_list
    if not visible.is_limited or not isinstance(rows, models.QuerySet):
        return whole
    if next(iter(rows.query.order_by), "") not in ("-pk", "-id"):
        return whole
    found = kind(rows, per_page, orphans)
    found.visible, found.any_state = visible, any_state
    return found
