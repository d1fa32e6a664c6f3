"""The description of the API as an OpenAPI 3.1 document, and the page that shows it."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.safestring import mark_safe

from scheduling.http.api import api
from scheduling.http.once import HEADER
from scheduling.http.problems import CONTENT_TYPE, STATUSES, ProblemShape, title_of

IDEMPOTENCY = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "Any text of the client. The same request with the same key is carried out once; kept for a day.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]{1,200}$"},
}
HEADERS: dict[str, tuple[str, ...]] = {
    "401": ("WWW-Authenticate",),
    "405": ("Allow",),
    "429": ("Retry-After",),
    "503": ("Retry-After",),
    "201": ("Location",),
    "StartedShape": ("Location",),
    "ScheduleShape": ("ETag",),
}
"""The headers that each answer with this status, or with this shape, has."""
HEADER_TEXT = {"required": True, "schema": {"type": "string"}}
WITH_BODY = frozenset({411, 413, 415})


@lru_cache(maxsize=4)
def openapi(prefix: str = "/cron/") -> dict[str, Any]:
    """The document.

    Args:
        prefix: the path at which the project has mounted the API.
    """
    document: dict[str, Any] = json.loads(json.dumps(api.get_openapi_schema(path_prefix=prefix), default=str))
    for path in document["paths"].values():
        for method, operation in path.items():
            _describe(method, operation)
    document["components"]["responses"] = {f"Problem{status}": _problem(status) for status in sorted(STATUSES)}
    document["openapi"] = "3.1.0"
    return document


def _describe(method: str, operation: dict[str, Any]) -> None:
    """Add what ninja does not know. All operations share the descriptions of the problem documents."""
    if method == "post":
        operation.setdefault("parameters", []).append(IDEMPOTENCY)
    with_body = method == "post" or "requestBody" in operation
    answers = {
        status: _answer(status, one) for status, one in operation["responses"].items() if not _is_problem(status)
    }
    problems = {
        str(status): {"$ref": f"#/components/responses/Problem{status}"}
        for status in STATUSES
        if with_body or status not in WITH_BODY
    }
    operation["responses"] = dict(sorted((answers | problems).items()))


def _is_problem(status: str) -> bool:
    return status.isdecimal() and int(status) in STATUSES


def _answer(status: str, response: dict[str, Any]) -> dict[str, Any]:
    """An answer with its headers, and with the content type of a file."""
    schema = response.get("content", {}).get("application/json", {}).get("schema", {})
    shape = schema.get("$ref", "").rpartition("/")[2]
    names = dict.fromkeys((*HEADERS.get(status, ()), *HEADERS.get(shape, ())))
    if schema.get("format") == "binary":
        response = response | {"content": {"*/*": {"schema": schema}}}
    return response | {"headers": dict.fromkeys(names, HEADER_TEXT)} if names else response


def _problem(status: int) -> dict[str, Any]:
    """The description of the problem documents with this status."""
    content = {CONTENT_TYPE: {"schema": {"$ref": f"#/components/schemas/{ProblemShape.__name__}"}}}
    return _answer(str(status), {"description": title_of(status), "content": content})


def openapi_document(_request: HttpRequest) -> HttpResponse:
    """The document as JSON. It says nothing about this installation but its address."""
    return JsonResponse(openapi(reverse("cron_api:docs").removesuffix("docs")))


def docs_page(request: HttpRequest) -> HttpResponse:
    """A page that shows the document and sends requests with the session of the user. All its files are local."""
    document = reverse("cron_api:openapi")
    settings = {"url": document, "layout": "BaseLayout", "deepLinking": True, "validatorUrl": None}
    # In a script of JSON, the sign < is the only one that could end the script.
    text = mark_safe(json.dumps(settings).replace("<", "\\u003c"))  # noqa: S308
    return render(request, "scheduling/api_docs.html", {"document": document, "settings": text})
