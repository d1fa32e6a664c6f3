"""Walk: goes through the rows of a queryset in the order of a unique column, with little memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db import DEFAULT_DB_ALIAS
from django.db.models import Field, QuerySet

from scheduling.core.steps import StepError

BATCH = 500
"""So many keys are read at once. The rows themselves are read one by one, so each is as new as its transaction."""


class Walk:
    """The rows of a queryset, from a position on.

    Args:
        rows: a queryset of the default database, without a slice. Its own order is ignored.
        key: the name of a unique column without NULL.

    Raises:
        StepError: the queryset or the key does not fit.
    """

    def __init__(self, rows: QuerySet[Any], key: str) -> None:
        if rows.query.is_sliced or rows.query.combinator:
            raise StepError("run.each takes a queryset without a slice, a union or the like.")
        if rows.db != DEFAULT_DB_ALIAS:
            raise StepError("run.each takes a queryset of the default database, where the position is stored.")
        try:
            field: Any = rows.model._meta.pk if key == "pk" else rows.model._meta.get_field(key)
        except FieldDoesNotExist:
            raise StepError(f"run.each: {rows.model._meta.label} has no column {key!r}.") from None
        if not isinstance(field, Field) or not (field.primary_key or field.unique) or field.null:
            raise StepError(f"run.each: the column {key!r} must be unique and have no NULL.")
        self._rows, self._name = rows.order_by(field.attname), field.attname
        target: Any = field
        while target.remote_field is not None:
            target = target.target_field
        self._field: Field = target

    def after(self, stored: Any) -> Iterator[Any]:
        """The keys of the rows after a stored position, in order; all keys if it is None."""
        last = None if stored is None else self._restored(stored)
        while True:
            rows = self._rows if last is None else self._rows.filter(**{f"{self._name}__gt": last})
            batch = list(rows.values_list(self._name, flat=True)[:BATCH])
            yield from batch
            if len(batch) < BATCH:
                return
            last = batch[-1]

    def row(self, position: Any) -> Any:
        """The row with this key as it is now; None if the queryset does not include it any more."""
        return self._rows.filter(**{self._name: position}).first()

    def portable(self, position: Any) -> Any:
        """The key as a value for JSON.

        Raises:
            StepError: the column cannot read the value again.
        """
        value = position if type(position) in (int, str) else str(position)
        if self._restored(value) != position:
            raise StepError(f"run.each: a key like {position!r:.80} cannot be stored. Choose another column.")
        return value

    def _restored(self, value: Any) -> Any:
        try:
            return self._field.to_python(value)
        except (ValidationError, ValueError, TypeError):
            raise StepError(f"run.each: the stored position {value!r:.80} fits no {self._name!r}.") from None
