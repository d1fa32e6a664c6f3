"""The API: its routers, and how errors are answered."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, Throttled, ValidationError

from scheduling.core.text import visible_text
from scheduling.http import backfills, calendars, executions, failed, installation, revisions, schedulers, targets
from scheduling.http.auth import StaffSession, TokenAuth
from scheduling.http.bodies import BoundedParser
from scheduling.http.guarded import problem_of
from scheduling.http.problems import from_pydantic, problem_response, refusal
from scheduling.http.throttle import CallerThrottle
from scheduling.operations.refused import Refused

DESCRIPTION = """Schedules, executions and the failed inbox of this installation: the same as in the admin, with the
same permissions, groups, refusals and history. Errors are problem documents (RFC 9457)."""

api = NinjaAPI(
    title="Cron for Django teams",
    version="1",
    description=" ".join(DESCRIPTION.split()),
    urls_namespace="cron_api",
    docs_url=None,
    openapi_url=None,
    parser=BoundedParser(),
    auth=[TokenAuth(), StaffSession()],
    throttle=[CallerThrottle()],
)
api.add_router("/schedulers", schedulers.router)
api.add_router("/calendars", calendars.router)
api.add_router("/schedulers", revisions.router)
api.add_router("/schedulers", backfills.of_schedule)
api.add_router("/executions", executions.router)
api.add_router("/backfills", backfills.router)
api.add_router("/failed", failed.router)
api.add_router("", targets.router)
api.add_router("", installation.router)


@api.exception_handler(ValidationError)
def _values(_request: HttpRequest, error: ValidationError) -> HttpResponse:
    return problem_response(from_pydantic(error.errors))


@api.exception_handler(HttpError)
def _body(_request: HttpRequest, error: HttpError) -> HttpResponse:
    # ninja raises it from what the parser has said.
    if isinstance(error.__cause__, Refused):
        return problem_response(error.__cause__)
    return problem_response(refusal("BAD_JSON", visible_text(error, 300)))


@api.exception_handler(AuthenticationError)
def _unknown(_request: HttpRequest, _error: AuthenticationError) -> HttpResponse:
    said = _("Send a token in the header Authorization: Bearer …, or log in to the admin.")
    return problem_response(refusal("UNAUTHENTICATED", said))


@api.exception_handler(Throttled)
def _too_many(_request: HttpRequest, _error: Throttled) -> HttpResponse:
    said = _("Too many requests in this minute. Wait, then go on.")
    return problem_response(refusal("TOO_MANY_REQUESTS", said))


@api.exception_handler(Http404)
def _nothing(_request: HttpRequest, error: Http404) -> HttpResponse:
    return problem_of(error)


@api.exception_handler(Exception)
def _other(_request: HttpRequest, error: Any) -> HttpResponse:
    return problem_of(error)
