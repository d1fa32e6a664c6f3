"""What holds for each address of the API: it may be switched off, answers with problem documents and is not cached."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from itertools import islice
from typing import Any

from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotAllowed
from django.utils.translation import gettext as _

from scheduling.admin.common.refused_values import is_refused_value
from scheduling.admin.common.unusable import unusable_values
from scheduling.conf import get_conf
from scheduling.core.deployment import Held
from scheduling.core.text import visible_text
from scheduling.http.auth import SAFE_METHODS, has_secret_in_url
from scheduling.http.bodies import read_body
from scheduling.http.problems import method_not_allowed, problem_response, refusal
from scheduling.logs import get_logger
from scheduling.operations.refused import Code, Refused
from scheduling.processes.database import is_away

log = get_logger(__name__)

View = Callable[..., HttpResponseBase]


def guarded(view: View) -> View:
    """The view of one address with what holds for all of them."""

    @wraps(view)
    def inner(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = _response(view, request, *args, **kwargs)
        response.headers.setdefault("Cache-Control", "no-store")
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response

    inner.csrf_exempt = True  # type: ignore[attr-defined]  # sessions are checked in `auth`
    # With ATOMIC_REQUESTS, messages would be sent before the rows are committed, and refusals would be rolled back.
    return transaction.non_atomic_requests(inner)


def read_only(view: View) -> View:
    """The view of an address that only answers GET."""

    @wraps(view)
    def inner(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return view(request, *args, **kwargs) if request.method == "GET" else HttpResponseNotAllowed(["GET"])

    return inner


def _response(view: View, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
    if not get_conf().api:
        raise Http404
    if has_secret_in_url(request):
        said = _(
            "The address has a token. Addresses stand in logs: revoke the token, and send another one in the header."
        )
        log.warning("A request of the API is refused, because its address has a token. Revoke this token.")
        return _unlogged(problem_response(refusal("TOKEN_IN_URL", said)))
    try:
        if request.method not in SAFE_METHODS:
            read_body(request)  # ninja would take a body that cannot be read for a missing one
        response = view(request, *args, **kwargs)
    except Exception as error:
        return problem_of(error)
    if response.status_code == 405:
        return method_not_allowed(request, response.headers.get("Allow", ""))
    return response


def _unlogged(response: HttpResponse) -> HttpResponse:
    """The answer, of which Django logs nothing: its line would have the address."""
    response._has_been_logged = True  # type: ignore[attr-defined]
    return response


def problem_of(error: Exception) -> HttpResponse:
    """The problem document of an error.

    Raises:
        the error, if it is a defect: Django then reports it.
    """
    if (refused := _refusal_of(error)) is not None:
        return problem_response(refused)
    if is_away(error):
        log.warning("A request of the API cannot be answered, because the database is away: %s", error)
        return problem_response(Refused(Code.DATABASE_AWAY, _("The database is away. Try again later.")))
    if not list(islice(unusable_values(), 1)):
        if is_refused_value(error):
            return problem_response(refusal("BAD_REQUEST", _("The database cannot use a value of this request.")))
        raise error
    log.warning("A request of the API cannot be answered beside a value that cannot be used", exc_info=error)
    said = _("Plain SQL has stored a value that cannot be used. A page of the admin, or `manage.py doctor`, names it.")
    return problem_response(Refused(Code.UNUSABLE_VALUE, said))


def _refusal_of(error: Exception) -> Refused | None:
    match error:
        case Refused():
            return error
        case Held():
            return Refused(Code.HELD, str(error))
        case Http404():
            return Refused(Code.NOT_FOUND, _("There is nothing at this address."))
        case PermissionDenied():
            return Refused(Code.FORBIDDEN, _("You may not do this."))
        case SuspiciousOperation():
            return refusal("BAD_REQUEST", visible_text(error, 300))
    return None


def nothing_here(request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
    """The answer at an address that does not exist."""
    raise Refused(Code.NOT_FOUND, _("There is nothing at this address."))
