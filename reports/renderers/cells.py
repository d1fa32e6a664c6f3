"""Turns the values of a row into the simple values that a file can hold. All renderers use these functions."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

MOST_BITS = 1_024
"""Integers with more bits become text. No float can hold them, so programs that read all numbers as floats read them as
infinity. Python itself refuses to read and to print integers of more than 4,300 digits."""

MOST_ZEROS = 400
"""A Decimal that would need more digits before or after the point keeps its exponent, such as 1E+999999999. Written
out, this one value would need a gigabyte. 400 digits hold every float."""

Cell = None | bool | int | float | Decimal | str
"""A value that fits into one cell. A Decimal or a float of this type is finite."""


def plain(value: Any) -> Any:
    """Return a value as text, int, finite float, bool or None, or as a list or dict of such values.

    Datetimes with a time zone become text in ISO 8601, in UTC and with a Z. Other dates and times become text in ISO
    8601. Integers that no float can hold become text. Other values become `str(value)`. This includes Decimals, but
    `cell` keeps a finite Decimal.

    Raises:
        Exception: the value's own `__str__` raised it.
        RecursionError: lists or dicts are nested too deeply.
    """
    match value:
        case None | bool():
            return value
        case int():  # int() and float() change subclasses, such as IntEnum, into what every format can write
            return int(value) if value.bit_length() <= MOST_BITS else f"{Decimal(value):f}"
        case float():
            return float(value) if math.isfinite(value) else str(float(value))
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case datetime() | date() | time():
            return value.isoformat()
        case Mapping():
            return {_text(key): plain(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(item) for item in value]
        case _:
            return _text(value)


def _text(value: Any) -> str:
    return str(value).replace("\x00", "\ufffd")  # subclasses, such as Django's SafeString, become plain str


def cell(value: Any) -> Cell:
    """Return a value as it fits into one cell. Lists and dicts become JSON text. A finite Decimal stays a Decimal.

    Raises:
        Exception: see `plain`.
    """
    if isinstance(value, Decimal) and value.is_finite():
        return value
    found: Any = plain(value)
    return json.dumps(found, ensure_ascii=False) if isinstance(found, dict | list) else found


def cell_text(found: Cell) -> str:
    """Return the text of a cell, for formats that have only text. None becomes an empty text."""
    match found:
        case None:
            return ""
        case bool():
            return "true" if found else "false"
        case Decimal():
            return f"{found:f}" if abs(found.adjusted()) <= MOST_ZEROS else str(found)
        case _:
            return str(found)
