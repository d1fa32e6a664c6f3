"""Hostile query strings and hostile primary keys for an address of the admin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from urllib.parse import quote_from_bytes

from django.apps import apps
from django.db import models

from tests.admin.addresses import Address
from tests.hostile.request_values import TEXTS, Value, as_bytes, hostile
from tests.hostile.requests import Pairs

EVERYWHERE = (
    "q", "o", "p", "all", "e", "_popup", "_to_field", "_facets", "_changelist_filters", "term", "app_label",
    "model_name", "field_name", "next", "unknown", "\x00", "",
)  # fmt: skip
"""Names of Django's own parameters, and names that no view knows."""

LOOKUPS = (
    "exact", "iexact", "contains", "icontains", "startswith", "gt", "lte", "in", "isnull", "range", "regex", "iregex",
    "date", "date__gt", "year", "year__lt", "week_day", "hour", "has_key", "contained_by", "pk", "id__in", "unknown",
    "",
)  # fmt: skip


def names_of(address: Address, asked: Iterable[str]) -> list[str]:
    """Return the parameters that an address may get: Django's own, those that its view asks for, and lookups.

    Args:
        asked: the names that the view has looked up in a query string.
    """
    names = [*EVERYWHERE, *sorted(asked)]
    if address.model and (address.app, address.model) in _tables():
        fields = apps.get_model(address.app, address.model)._meta.get_fields()
        names += [field.name for field in fields]
    return names


def query(random: Random, names: Sequence[str], keys: Sequence[str]) -> Pairs:
    """Return the names and values of a query string. Most have one parameter: a list stops at its first error."""
    pairs: list[tuple[str, Value]] = []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        name = random.choice(names)
        if random.random() < 0.35:
            name += "__" + random.choice(LOOKUPS)
        elif random.random() < 0.05:
            name += "__" + random.choice(names) + "__" + random.choice(LOOKUPS)
        value = hostile(random, name, keys)
        pairs += [(name, value)] * random.choice((1, 1, 1, 1, 2, 5))
    if random.random() < 0.02:
        pairs += [(f"x{number}", "1") for number in range(1_100)]
    return [(name, value) for name, value in pairs if len(as_bytes(value)) < 100_000]


def path_of(random: Random, address: Address, keys: Sequence[str]) -> str:
    """Return the path of an address. Now and then, a hostile value stands in the place of the row's primary key."""
    if address.row is None or random.random() > 0.15:
        return address.path
    value = random.choice((hostile(random, "_id", keys), random.choice(TEXTS)))
    before, _key, after = address.path.rpartition(f"/{address.row.pk}/")
    return f"{before}/{quote_from_bytes(as_bytes(value)[:60_000])}/{after}"


def _tables() -> set[tuple[str, str]]:
    return {
        (model._meta.app_label, str(model._meta.model_name))
        for model in apps.get_models()
        if issubclass(model, models.Model)
    }
