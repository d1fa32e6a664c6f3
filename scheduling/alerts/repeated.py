"""Queries that each evaluation makes. Their SQL is built once, and a row that comes again is not converted again.

With hundreds of rules, the ORM needs longer to build the statements and to convert the values than the database to
answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.db.models import QuerySet

from scheduling.alerts.reading import readable, readable_and_bad, tried
from scheduling.core.chunks import chunks
from scheduling.models.prepared import ANY_INSTANT, Found, Prepared, PreparedOver

Made = TypeVar("Made")
Values = tuple[Any, ...]

SIZES = (1, 5, 20, 50, 100, 150, 200, 300, 400, 500)
"""A query by keys has so many keys, so that few statements are built. It is filled up with keys that no row has."""

MOST_REMEMBERED = 5_000
"""So many rows of a query are remembered."""


class RepeatedQuery(Generic[Made]):
    """A query that depends on nothing but the present time. Rows that cannot be read are left out.

    Args:
        build: makes the queryset, without `values_list`, for an instant. See `models.prepared.Prepared`.
        columns: the first one is `pk`.
        most: at most so many rows are read.
        make: what a row becomes. It depends on the values of the row alone.
    """

    def __init__(
        self,
        build: Callable[[datetime], QuerySet[Any]],
        columns: Sequence[str],
        most: int,
        make: Callable[[Values], Made],
    ) -> None:
        self._build, self._columns, self._most, self._make = build, columns, most, make
        self._prepared = Prepared(lambda now: build(now).values_list(*columns)[:most])
        self._known: dict[Values, Made] = {}

    def rows(self, now: datetime = ANY_INSTANT) -> list[Made]:
        """What the first rows have become.

        Args:
            now: the instant for which `build` is called. A query that depends on no instant needs none.

        Raises:
            django.db.DatabaseError: the database cannot be reached.
        """
        return self.rows_and_bad(now)[0]

    def rows_and_bad(self, now: datetime = ANY_INSTANT) -> tuple[list[Made], Sequence[Any]]:
        """The same, and the keys of those of the first rows that cannot be read."""
        found, error = tried(lambda: self._read(now))
        if error is None:
            return found, ()
        read, bad = readable_and_bad(self._build(now), self._most, self._columns)
        return [self._make(values) for values in read], bad

    def _read(self, now: datetime) -> list[Made]:
        found = self._prepared.found(now)
        made = self._known | _new(found, self._known, self._make)
        self._known = {row: made[row] for row in found.rows} if len(found.rows) <= MOST_REMEMBERED else {}
        return [made[row] for row in found.rows]


class KeyedQuery(Generic[Made]):
    """The rows of a model with certain keys. Rows that cannot be read are left out.

    Args:
        rows: the rows of the model, in the order in which they are wanted.
        columns: the first one is `pk`.
        make: what a row becomes. It depends on the values of the row alone.
    """

    def __init__(
        self, rows: Callable[[], QuerySet[Any]], columns: Sequence[str], make: Callable[[Values], Made]
    ) -> None:
        self._rows, self._columns, self._make = rows, columns, make
        self._prepared = PreparedOver(lambda keys: rows().filter(pk__in=keys).values_list(*columns), int)
        self._known: dict[Values, Made] = {}

    def rows(self, keys: Collection[int]) -> list[Made]:
        """What the rows with these keys have become.

        Raises:
            django.db.DatabaseError: the database cannot be reached.
        """
        return [made for some in chunks(sorted(set(keys)), SIZES[-1]) for made in self._some(some)]

    def _some(self, keys: Sequence[int]) -> list[Made]:
        found, error = tried(lambda: self._read(keys))
        if error is None:
            return found
        values = readable(self._rows().filter(pk__in=keys), len(keys), self._columns)
        return [self._make(one) for one in values]

    def _read(self, keys: Sequence[int]) -> list[Made]:
        size = next(size for size in SIZES if size >= len(keys))
        found = self._prepared.found([*keys, *range(-1, len(keys) - size - 1, -1)])
        made = self._known | _new(found, self._known, self._make)
        self._known = made if len(made) <= MOST_REMEMBERED else {}
        return [made[row] for row in found.rows]


def _new(found: Found, known: dict[Values, Made], make: Callable[[Values], Made]) -> dict[Values, Made]:
    new = [row for row in found.rows if row not in known]
    return {row: make(values) for row, values in zip(new, found.converted(new), strict=True)}


def as_they_are(values: Values) -> Values:
    """The values themselves, as what a row becomes."""
    return values
