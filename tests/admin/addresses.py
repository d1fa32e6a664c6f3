"""List every address (URL path) of an admin site. The list comes from the URLconf, so it includes each new URL."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from django.db.models import Model
from django.urls import URLPattern, URLResolver, get_resolver

from scheduling.admin.dashboard.view import PARTS
from scheduling.admin.schedulers.preview import FIELDS

OWN = ("scheduling", "cron_reports")
"""Labels of this project's own apps. All other apps of the site belong to Django."""

VALUES: dict[tuple[str, str], Sequence[str]] = {
    ("scheduling_dashboard_part", "name"): tuple(PARTS),
    ("scheduling_dashboard_hour", "seconds"): (str((int(time.time()) // 3600 + 2) * 3600),),
    ("scheduling_scheduler_preview", "part"): tuple(FIELDS),
    ("view_on_site", "content_type_id"): ("1",),
    ("view_on_site", "object_id"): ("1",),
}
"""Values for URL parameters that are not primary keys. Each key is (name of the URL, name of the parameter)."""

QUERIES: dict[str, Sequence[str]] = {
    "scheduling_alertrule_add": ("?kind=not_finished",),
    "scheduling_scheduler_undo": ("?number=2",),
    "scheduling_scheduler_restore": ("?number=1",),
}
"""Query strings that lead to another page of the same address. Each key is the name of a URL."""

KEYS = ("object_id", "key", "id", "pk")
_PART = re.compile(r"<(?:\w+:)?(\w+)>")


@dataclass(frozen=True)
class Address:
    """One address. An address that needs a row contains the row's primary key.

    Args:
        name: the URL's name without its namespace, or "" if the URL has no name.
        model: the model's name in lower case, or "" if the address belongs to no model.
    """

    name: str
    path: str
    app: str = ""
    model: str = ""
    row: Model | None = None

    @property
    def own(self) -> bool:
        """Whether the address belongs to one of this project's apps."""
        return self.app in OWN


def every_address(rows: Mapping[str, Sequence[Model]], site: str = "admin") -> list[Address]:
    """Return all addresses. An address that needs a row is returned once for every row of its model.

    Args:
        site: the AdminSite's name, which is also the first part of the site's addresses. Only this site is listed.

    Raises:
        AssertionError: if no value is known for a parameter of a URL.
    """
    routes = _walk(get_resolver().url_patterns, site)
    return [address for route, name in routes for address in _filled(route, name, rows, site)]


def _walk(patterns: Sequence[Any], site: str, before: str = "") -> Iterator[tuple[str, str]]:
    for pattern in patterns:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            if pattern.namespace in (None, site):
                yield from _walk(pattern.url_patterns, site, route)
        elif isinstance(pattern, URLPattern):
            yield route, pattern.name or ""


def _filled(route: str, name: str, rows: Mapping[str, Sequence[Model]], site: str) -> Iterator[Address]:
    if name == "app_list":
        yield from (Address(name, f"/{site}/{label}/") for label in OWN)
        return
    if "(?P<url>" in route:
        yield Address(name, f"/{site}/nowhere/")
        return
    parts = route.split("/")
    app, model = (parts[1], parts[2]) if len(parts) > 3 and parts[0] == site and "<" not in parts[2] else ("", "")
    names = _PART.findall(route)
    if not names:
        yield from (Address(name, f"/{route}{query}", app, model) for query in ("", *QUERIES.get(name, ())))
    elif len(names) == 1 and names[0] in KEYS:
        assert rows.get(model), f"{route}: no row of {model} is there to open it with"
        for row, query in product(rows[model], ("", *QUERIES.get(name, ()))):
            yield Address(name, f"/{_PART.sub(str(row.pk), route)}{query}", app, model, row)
    else:
        missing = [part for part in names if (name, part) not in VALUES]
        assert not missing, f"{route}: VALUES must say what {missing} stands for"
        for value in VALUES[name, names[0]]:
            path = _PART.sub(value, route, count=1)
            for part in names[1:]:
                path = _PART.sub(VALUES[name, part][0], path, count=1)
            yield Address(name, f"/{path}", app, model)
