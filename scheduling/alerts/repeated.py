"""Queries that each evaluation makes. Their SQL is built once, and a row that comes again is not converted again.

With hundreds of rules, the ORM needs longer to build the statements and to convert the values than the database to
answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Generic, TypeVar

from django.db.models import QuerySet

from scheduling.alerts.reading import readable, readable_and_bad, tried
from scheduling.alerts.text_instants import with_instants, with_texts
from scheduling.core.chunks import chunks
from scheduling.models.prepared import ANY_INSTANT, Found, Prepared, PreparedUnion
from scheduling.models.prepared_over import PreparedOver

Made = TypeVar("Made")
Values = tuple[Any, ...]
Known = dict[Any, tuple[Values, Made]]
"""By the key of a row: its values as the driver gave them, and what it has become."""

MOST_REMEMBERED = 5_000
"""So many rows of a query are remembered."""


class RepeatedQuery(Generic[Made]):
    """A query that depends on nothing but the present time. Rows that cannot be read are left out.

    Args:
        build: makes the queryset, without `values_list`, for an instant. See `models.prepared.Prepared`.
        columns: the first one is `pk`.
        most: at most so many rows are read of each queryset.
        make: what a row becomes. It depends on the values of the row alone.
        further: more querysets of the same model. They are read in the same round trip. The rows are in no order then.
    """

    def __init__(
        self,
        build: Callable[[datetime], QuerySet[Any]],
        columns: Sequence[str],
        most: int,
        make: Callable[[Values], Made],
        *further: Callable[[datetime], QuerySet[Any]],
    ) -> None:
        self._builds, self._columns, self._most, self._make = (build, *further), columns, most, make
        limited = [partial(self._limited, one) for one in self._builds]
        self._prepared = PreparedUnion(limited) if further else Prepared(limited[0])
        self._known: Known[Made] = {}

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
        parts = [readable_and_bad(build(now), self._most, self._columns) for build in self._builds]
        made = [self._make(values) for read, _bad in parts for values in read]
        return made, [key for _read, bad in parts for key in bad]

    def _limited(self, build: Callable[[datetime], QuerySet[Any]], now: datetime) -> QuerySet[Any, Any]:
        return with_texts(build(now), self._columns)[: self._most]

    def _read(self, now: datetime) -> list[Made]:
        found = self._prepared.found(now)
        made = _made(found, self._known, self._make)
        self._known = _by_key(found, made) if len(made) <= MOST_REMEMBERED else {}
        return made


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
        self._prepared = PreparedOver(lambda keys: with_texts(rows().filter(pk__in=keys), columns), int)
        self._known: Known[Made] = {}

    def rows(self, keys: Collection[int]) -> list[Made]:
        """What the rows with these keys have become. A key that is no whole number, as SQLite can store it, has none.

        Raises:
            django.db.DatabaseError: the database cannot be reached.
        """
        whole = {key for key in keys if type(key) is int}
        return [made for some in chunks(sorted(whole)) for made in self._some(some)]

    def _some(self, keys: Sequence[int]) -> list[Made]:
        found, error = tried(lambda: self._read(keys))
        if error is None:
            return found
        values = readable(self._rows().filter(pk__in=keys), len(keys), self._columns)
        return [self._make(one) for one in values]

    def _read(self, keys: Sequence[int]) -> list[Made]:
        found = self._prepared.found(keys)
        made = _made(found, self._known, self._make)
        known = self._known | _by_key(found, made)
        self._known = known if len(known) <= MOST_REMEMBERED else {}
        return made


def _made(found: Found, known: Known[Made], make: Callable[[Values], Made]) -> list[Made]:
    """What the rows have become. Only those that are new or have changed are converted."""
    rows = found.rows
    before = [one[1] if (one := known.get(row[0])) is not None and one[0] == row else None for row in rows]
    new = [row for row, one in zip(rows, before, strict=True) if one is None]
    values = iter(with_instants(found.columns, found.converted(new)))
    return [make(next(values)) if one is None else one for one in before]


def _by_key(found: Found, made: Sequence[Made]) -> Known[Made]:
    return {row[0]: (row, one) for row, one in zip(found.rows, made, strict=True)}


def as_they_are(values: Values) -> Values:
    """The values themselves, as what a row becomes."""
    return values
