"""Makes the answers. The shapes are checked when they are made, so they are not checked again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from django.http import HttpResponse
from django.urls import reverse
from pydantic import BaseModel

from scheduling.http.schemas import StartedShape
from scheduling.models import SchedulerExecution
from scheduling.operations.shapes import Shape
from scheduling.operations.shaping import each_usable

Row = TypeVar("Row", bound=Shape)

JSON = "application/json"
CHUNK = 50
"""So many rows of a page are in memory at once."""
LARGEST_PAGE = 4_000_000
"""A page ends when it has so many characters."""


def answer(shape: BaseModel, status: int = 200, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """A shape as JSON."""
    text = shape.model_dump_json(by_alias=True)
    return HttpResponse(text, status=status, content_type=JSON, headers=dict(headers or {}))


def listing(
    keys: Sequence[int], following: int | None, bulk: Callable[[Sequence[int]], dict[int, Row]], is_cut: bool = False
) -> HttpResponse:
    """One page of a list. It ends early if its rows are very large; then `next` leads to the others.

    Args:
        keys: the keys of the rows.
        following: the key after which the next page begins; None on the last page.
        bulk: reads and shapes the rows with these keys, as `each_usable` needs it.
        is_cut: whether a search has read only the newest rows.
    """
    rows: list[str] = []
    bad: list[str] = []
    size = 0
    for start in range(0, len(keys), CHUNK):
        chunk = keys[start : start + CHUNK]
        found, unusable = each_usable(chunk, bulk)
        rows += [one.model_dump_json() for one in found]
        bad += [one.model_dump_json() for one in unusable]
        size = sum(map(len, rows))
        if size > LARGEST_PAGE and chunk[-1] != keys[-1]:
            following = chunk[-1]
            break
    after, cut = "null" if following is None else str(following), "true" if is_cut else "false"
    body = f'{{"items":[{",".join(rows)}],"unusable":[{",".join(bad)}],"next":{after},"is_cut":{cut}}}'
    return HttpResponse(body, content_type=JSON)


def started(row: SchedulerExecution, status: int = 202) -> HttpResponse:
    """The answer to a request for a run: where its execution is found."""
    address = reverse("cron_api:execution", args=[row.pk])
    return answer(StartedShape(id=row.pk, state=row.state, address=address), status, {"Location": address})


def etag(version: str) -> str:
    """The value of the header ETag."""
    return f'"{version}"'
