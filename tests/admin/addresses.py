"""Every address of the site, read off the URLconf: a new one is tested from its first day, by whoever it was added."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Model
from django.urls import URLPattern, URLResolver, get_resolver

from scheduling.admin.dashboard.view import PARTS
from scheduling.admin.preview import FIELDS

OWN = ("scheduling", "reports")
"""Labels of the apps that this project brings; all others are Django's."""

VALUES: dict[tuple[str, str], Sequence[str]] = {
    ("scheduling_dashboard_part", "name"): tuple(PARTS),
    ("scheduling_scheduler_preview", "part"): tuple(FIELDS),
    ("view_on_site", "content_type_id"): ("1",),
    ("view_on_site", "object_id"): ("1",),
}
"""What stands in an address that is no key of a row, by the address's name and the part's."""

KEYS = ("object_id", "id", "pk", "artefact_id")
_PART = re.compile(r"<(?:\w+:)?(\w+)>")


@dataclass(frozen=True)
class Address:
    """One address for one row.

    Args:
        name: of the URL, without its namespace; empty for those that have none.
        model: in lower case, as the address has it; empty for those of no model.
    """

    name: str
    path: str
    app: str = ""
    model: str = ""
    row: Model | None = None

    @property
    def own(self) -> bool:
        """Whether it is of this project's apps."""
        return self.app in OWN


def every_address(rows: Mapping[str, Sequence[Model]]) -> list[Address]:
    """All addresses, each once for each of the rows of its model.

    Raises:
        AssertionError: for an address that nobody has said how to fill in.
    """
    return [address for route, name in _walk(get_resolver().url_patterns) for address in _filled(route, name, rows)]


def _walk(patterns: Sequence[Any], before: str = "") -> Iterator[tuple[str, str]]:
    for pattern in patterns:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _walk(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern):
            yield route, pattern.name or ""


def _filled(route: str, name: str, rows: Mapping[str, Sequence[Model]]) -> Iterator[Address]:
    if name == "app_list":
        yield from (Address(name, f"/admin/{label}/") for label in OWN)
        return
    if "(?P<url>" in route:
        yield Address(name, "/admin/nowhere/")
        return
    parts = route.split("/")
    app, model = (parts[1], parts[2]) if len(parts) > 3 and parts[0] == "admin" and "<" not in parts[2] else ("", "")
    names = _PART.findall(route)
    if not names:
        yield Address(name, f"/{route}", app, model)
    elif len(names) == 1 and names[0] in KEYS:
        assert rows.get(model), f"{route}: no row of {model} is there to open it with"
        for row in rows[model]:
            yield Address(name, "/" + _PART.sub(str(row.pk), route), app, model, row)
    else:
        missing = [part for part in names if (name, part) not in VALUES]
        assert not missing, f"{route}: VALUES must say what {missing} stands for"
        for value in VALUES[name, names[0]]:
            path = _PART.sub(value, route, count=1)
            for part in names[1:]:
                path = _PART.sub(VALUES[name, part][0], path, count=1)
            yield Address(name, f"/{path}", app, model)
