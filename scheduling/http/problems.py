"""Problem documents (RFC 9457): the answers that say why a request was refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpRequest, HttpResponse
from pydantic import BaseModel, ConfigDict, Field

from scheduling.core.text import visible_text
from scheduling.operations.refused import Code, Problem, Refused

CONTENT_TYPE = "application/problem+json"
MOST_ERRORS = 50
PLACES = ("body", "query", "path", "header", "values", "page", "wanted")
"""Words in the place of an error that name no value of the client."""

STATUS: Mapping[str, int] = {
    Code.FORBIDDEN: 403,
    Code.NOT_FOUND: 404,
    Code.AMBIGUOUS: 409,
    Code.INVALID: 422,
    Code.RETRY_POLICY_INVALID: 422,
    Code.CHANGED: 412,
    Code.CONFLICT: 409,
    Code.COUNT_DIFFERS: 409,
    Code.HELD: 503,
    Code.BROKER_AWAY: 503,
    Code.DATABASE_AWAY: 503,
    "UNAUTHENTICATED": 401,
    "CSRF": 403,
    "TOKEN_IN_URL": 400,
    "BAD_JSON": 400,
    "BAD_REQUEST": 400,
    "METHOD_NOT_ALLOWED": 405,
    "LENGTH_REQUIRED": 411,
    "TOO_LARGE": 413,
    "NOT_JSON": 415,
    "TOO_MANY_REQUESTS": 429,
    Code.UNUSABLE_VALUE: 409,
    "IDEMPOTENCY_KEY_INVALID": 400,
    "IDEMPOTENCY_KEY_REUSED": 422,
    "IDEMPOTENCY_IN_PROGRESS": 409,
    "IF_MATCH_INVALID": 400,
}
"""Maps each code to the status of its answer."""

STATUSES = frozenset(STATUS.values())
"""The statuses that a problem document may have."""


class ErrorShape(BaseModel):
    """One value that cannot be used."""

    model_config = ConfigDict(title="Error")

    field: str = Field(description="The name of the value, such as `max_retries`; empty for the whole request.")
    code: str
    message: str


class ProblemShape(BaseModel):
    """Why a request was refused. Scripts compare `code`; people read `detail`."""

    model_config = ConfigDict(title="Problem", extra="allow")

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    code: str
    errors: list[ErrorShape] = Field(default_factory=list)


def title_of(status: int) -> str:
    """The name of a status in RFC 9110. Python has had two other names until 3.13."""
    return {413: "Content Too Large", 422: "Unprocessable Content"}.get(status, HTTPStatus(status).phrase)


def refusal(code: str, said: str, **extra: Any) -> Refused:
    """A refusal that only HTTP knows."""
    return Refused(code, said, extra=extra)


def problem_response(refused: Refused, extra: Mapping[str, Any] | None = None) -> HttpResponse:
    """The problem document of a refusal."""
    status = STATUS.get(refused.code, 422)
    body = {
        **{name: value for name, value in refused.extra.items() if name not in ("row", "headers")},
        **(extra or {}),
        "type": "about:blank",
        "title": title_of(status),
        "status": status,
        "detail": visible_text(refused.said, 2_000),
        "code": str(refused.code),
        "errors": [_error(problem) for problem in refused.problems[:MOST_ERRORS]],
    }
    headers = dict(refused.extra.get("headers", {}))
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers.setdefault("Retry-After", "5")
    text = json.dumps(body, cls=DjangoJSONEncoder)
    return HttpResponse(text, status=status, content_type=CONTENT_TYPE, headers=headers)


def _error(problem: Problem) -> dict[str, str]:
    return {"field": visible_text(problem.field, 200), "code": problem.code, "message": problem.message}


def from_pydantic(errors: list[dict[str, Any]]) -> Refused:
    """The refusal for values that do not have the described form.

    Args:
        errors: as pydantic lists them.
    """
    found = [
        Problem(
            visible_text(".".join(str(part) for part in error["loc"] if part not in PLACES), 200),
            str(error.get("type", "invalid")),
            visible_text(error.get("msg", "").removeprefix("Value error, "), 500),
        )
        for error in errors[:MOST_ERRORS]
    ]
    return Refused.invalid(found)


def method_not_allowed(request: HttpRequest, allowed: str) -> HttpResponse:
    """The answer to a method that the address does not have."""
    allowed = ", ".join(sorted(allowed.replace(" ", "").split(",")))
    said = f"{visible_text(request.method or '', 20)} is not possible here. Possible: {allowed}."
    return problem_response(refusal("METHOD_NOT_ALLOWED", said, headers={"Allow": allowed}))
