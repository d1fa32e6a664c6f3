"""Finds stored values that Python cannot use. Plain SQL may have written any value.

SQLite stores any type in any column, PostgreSQL has `infinity` and years before Christ, and MariaDB has the date
0000-00-00.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from django.db import models, transaction
from django.utils.translation import gettext as _

from scheduling.core.messages import FIRST_YEAR, LAST_YEAR
from scheduling.core.run_sentences import COLUMN
from scheduling.processes.database import is_away

_TYPES: tuple[tuple[type[models.Field], tuple[type, ...]], ...] = (
    (models.DateTimeField, (datetime,)),
    (models.BooleanField, (bool,)),
    (models.IntegerField, (int,)),
    (models.FloatField, (int, float)),
    (models.UUIDField, (uuid.UUID,)),
    (models.FileField, (object,)),
    (models.CharField, (str,)),
    (models.TextField, (str,)),
)


def read(rows: models.QuerySet[Any], names: list[str]) -> tuple[list[Any], Exception | None]:
    """The values of these columns in these rows, or the error that reading them raised.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    try:
        with transaction.atomic():
            return list(rows.values_list(*names)), None
    except Exception as error:
        if is_away(error):
            raise
        return [], error


def read_each(
    rows: models.QuerySet[Any], keys: Sequence[int], names: list[str]
) -> tuple[list[Any], dict[int, Exception]]:
    """The values of these columns in the rows with these keys, and the error of each row that cannot be read.

    Halves of the keys are read, so that one bad row costs only a few queries.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    found, error = read(rows.filter(pk__in=keys).order_by("pk"), names)
    if error is None:
        return found, {}
    if len(keys) == 1:
        return [], {keys[0]: error}
    middle = len(keys) // 2
    (first, bad), (second, worse) = (read_each(rows, part, names) for part in (keys[:middle], keys[middle:]))
    return first + second, bad | worse


def problem(field: models.Field, value: Any) -> str:
    """The second part of a sentence that says why a value cannot be used; empty if it can be used."""
    own = getattr(field, "target_field", field)  # a foreign key has the type of the key that it names
    if value is None:
        return "" if field.null or isinstance(own, models.JSONField) else _("holds nothing that can be read")
    kinds = next((kinds for kind, kinds in _TYPES if isinstance(own, kind)), (object,))
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds and object not in kinds):
        return _("holds a value of the wrong type: %s") % type(value).__name__
    if isinstance(value, datetime) and not FIRST_YEAR <= value.year <= LAST_YEAR:
        return _("holds an instant outside the years %(first)s to %(last)s") % {"first": FIRST_YEAR, "last": LAST_YEAR}
    return ""


def unusable_columns(model: type[models.Model], pk: Any) -> Iterator[tuple[str, str]]:
    """The name of each column with an unusable value, and its problem.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    fields = model._meta.concrete_fields
    row = model._base_manager.filter(pk=pk)
    found, unreadable = read(row, [field.attname for field in fields])
    if unreadable is not None:
        for field in fields:
            _values, error = read(row, [field.attname])
            if error is not None:
                yield str(field.column), f"{type(error).__name__}: {error}"
        return
    for values in found:
        for field, value in zip(fields, values, strict=True):
            if said := problem(field, value) or _unread(row, field, value):
                yield str(field.column), said


def _unread(row: models.QuerySet[Any], field: models.Field, value: Any) -> str:
    """Django reads some texts, for example `-infinity` in SQLite, as if the column had no value."""
    stored = value is None and row.filter(**{f"{field.attname}__isnull": False}).exists()
    return _("holds nothing that can be read") if stored else ""


def at_column(model: type[models.Model], pk: int, error: Exception) -> str:
    """The error's class and text, with the name of the first column that has an unusable value, if there is one.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    said = f"{type(error).__name__}: {error}"
    return next((COLUMN.format(column=column, error=said) for column, _problem in unusable_columns(model, pk)), said)
