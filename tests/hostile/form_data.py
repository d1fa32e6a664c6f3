"""Hostile POSTs: the data of a valid form with one or more fields changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from tests.hostile.request_values import Value, as_bytes, hostile
from tests.hostile.requests import Pairs, Upload

IGNORED = ("csrfmiddlewaretoken",)


def pairs_of(data: Mapping[str, Any]) -> Pairs:
    """Return the names and values of a form. A name with a list of values is sent once for each value."""
    return [
        (name, str(value))
        for name, values in data.items()
        for value in (values if isinstance(values, list | tuple) else [values])
        if name not in IGNORED
    ]


def mutated(random: Random, data: Mapping[str, Any], asked: Sequence[str], keys: Sequence[str]) -> Pairs:
    """Return the form with one to three changes.

    Args:
        asked: the names that the view looks up. The browser may not send all of them.
        keys: primary keys of rows of any table.
    """
    pairs = list(pairs_of(data))
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        pairs = _changed(random, pairs, asked, keys)
    return pairs


def _changed(random: Random, pairs: Pairs, asked: Sequence[str], keys: Sequence[str]) -> list[tuple[str, Any]]:
    found = list(pairs)
    fields = sorted({name for name, _value in found})
    known = random.random() < 0.85 and fields
    name = random.choice(fields) if known else random.choice([*asked, "unknown", "form-TOTAL_FORMS", "\x00", "_popup"])
    value: Value | Upload = hostile(random, name, keys)
    match random.random():
        case part if part < 0.06:  # remove the field
            return [pair for pair in found if pair[0] != name]
        case part if part < 0.12:  # send it several times, with other values
            return [*found, *((name, hostile(random, name, keys)) for _ in range(random.choice((1, 2, 20))))]
        case part if part < 0.17:
            value = Upload(as_bytes(hostile(random, name, keys)))
        case part if part < 0.19:  # send nothing else
            found = []
        case part if part < 0.20:
            found += [(f"x{number}", "1") for number in range(1_100)]
    return [*(pair for pair in found if pair[0] != name), (name, value)]
