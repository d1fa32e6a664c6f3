"""Finds the column of a row whose value Python cannot use. Plain SQL may have written any value."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Field, Model

from scheduling.processes.database import is_away


def bad_column(model: type[Model], pk: int) -> str:
    """The name of the first column with an unusable value; empty if all values can be used.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    rows = model._default_manager.filter(pk=pk)
    for field in model._meta.concrete_fields:
        try:
            with transaction.atomic():
                for value in rows.values_list(field.attname, flat=True):
                    _check(field, value)
                    # Django reads some texts, for example `-infinity`, as if the column had no value.
                    if value is None and rows.filter(**{f"{field.attname}__isnull": False}).exists():
                        return str(field.column)
        except Exception as error:
            if is_away(error):
                raise
            return str(field.column)
    return ""


def _check(field: Field[Any, Any], value: Any) -> None:
    """Refuse a value that this field does not hold.

    Raises:
        ValidationError: the value is missing, or of a wrong type.
    """
    if value is None and not field.null:
        raise ValidationError("missing")
    if value is not None:
        field.to_python(value)
        if field.get_internal_type() == "JSONField" and not isinstance(value, dict):
            raise ValidationError("no object")


def at_column(model: type[Model], pk: int, error: Exception) -> str:
    """The error's class and text, with the name of the column that has an unusable value, if there is one."""
    column = bad_column(model, pk)
    said = f"{type(error).__name__}: {error}"
    return f"Column {column}: {said}" if column else said
