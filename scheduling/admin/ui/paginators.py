"""Paginators for tables with millions of rows. Each paginator avoids a slow count."""

from __future__ import annotations

from functools import cached_property

from django.core.paginator import Paginator
from django.db import models

from scheduling.models.counts import count_of_state


class OncePaginator(Paginator):
    """Counts all rows. If all rows fit on one page, one query gives both the count and the primary keys of the page."""

    @cached_property
    def count(self) -> int:
        return self._counted

    @cached_property
    def few(self) -> list[int] | None:
        """The primary keys of all rows if all rows fit on one page, otherwise None.

        With a filter that matches few rows, the database may read the whole table. The keys are cached, because
        otherwise the database would read the table twice: once for the count, and once for the page.
        """
        assert isinstance(self.object_list, models.QuerySet)  # noqa: S101 - callers have a queryset
        keys = list(_unsorted(self.object_list).values_list("pk", flat=True)[: self.per_page + 1])
        return keys if len(keys) <= self.per_page else None

    @cached_property
    def _counted(self) -> int:
        rows = self.object_list
        if not isinstance(rows, models.QuerySet):
            return len(rows)
        return self._number(rows) if self.few is None else len(self.few)

    def _number(self, rows: models.QuerySet) -> int:
        return rows.count()


class InboxPaginator(OncePaginator):
    """Counts the rows of the failed inbox with the help of the index on the state."""

    def _number(self, rows: models.QuerySet) -> int:
        return count_of_state(rows)


class CappedPaginator(OncePaginator):
    """Counts at most `count_limit` rows. `capped` says whether there are more rows.

    An index orders the list, so the database finds every page within this limit quickly, even in a large table.
    """

    count_limit = 10_000

    @cached_property
    def count(self) -> int:
        """The number of rows, at most `count_limit`."""
        return min(self._counted, self.count_limit)

    @property
    def capped(self) -> bool:
        """Whether there are more rows than `count_limit`."""
        return self._counted > self.count_limit

    def _number(self, rows: models.QuerySet) -> int:
        return _unsorted(rows)[: self.count_limit + 1].count()


def _unsorted(rows: models.QuerySet) -> models.QuerySet:
    """The rows without their order, unless they are ordered by primary key.

    A count needs no order, and another order than that of the primary key would sort the rows. The order by primary key
    stays, because a database may choose a slower index without it.
    """
    first = str(next(iter(rows.query.order_by), "pk")).lstrip("-")
    return rows if first in ("pk", "id") else rows.order_by()


class KeyPaginator(Paginator):
    """Reads the primary keys of all rows in their order, and counts these keys.

    It is for filters that are slow and rows that are few: the database applies the filter once, not once for the count
    and once more for the page.
    """

    @cached_property
    def keys(self) -> list[int]:
        assert isinstance(self.object_list, models.QuerySet)  # noqa: S101 - callers have a queryset
        return list(self.object_list.prefetch_related(None).values_list("pk", flat=True))

    @cached_property
    def count(self) -> int:
        return len(self.keys)
