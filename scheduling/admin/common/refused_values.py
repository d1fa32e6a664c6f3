"""Answers a request with 400 if the database cannot use a value of its URL or form.

Django's lists turn parameters of the URL, and the keys of selected rows, into a query without a check. The ORM or the
database then raises an error. Examples are a number that is too large, text as a primary key, a date before year 1, an
invalid regular expression, and a search of 1,200 words on SQLite.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _

from scheduling.core.text import visible_text
from scheduling.logs import get_logger
from scheduling.processes.database import is_away

log = get_logger(__name__)

CONVERTERS = ("django.utils.", "MySQLdb.", "psycopg.")
"""Modules that the ORM calls to convert a value."""


class RefusedValues:
    """A middleware for all pages of the admin, including the pages of other apps.

    The pages of `scheduling` and `reports` do not need the middleware, because their views call `answer` themselves.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        match = request.resolver_match
        return answer(request, error) if match is not None and "admin" in match.app_names else None


def answer(request: HttpRequest, error: Exception) -> HttpResponse | None:
    """The response for an error of a view: 400 if a value was refused, None for any other error."""
    if not is_refused_value(error):
        return None
    log.warning(
        "%s %s is refused: %s", request.method, request.path, visible_text(f"{type(error).__name__}: {error}", 500)
    )
    text = _("The database cannot use a value of this address or form. Nothing was changed.")
    return HttpResponseBadRequest(text, content_type="text/plain; charset=utf-8")


def is_refused_value(error: BaseException) -> bool:
    """Whether the ORM could not convert a value, or the database refused a statement because of its values.

    The result is False if the database cannot be reached or is not migrated, and for errors of other code.
    """
    if isinstance(error, DatabaseError | InterfaceError):
        return not is_away(error)
    if not isinstance(error, ValueError | TypeError | ArithmeticError | LookupError):
        return False
    for name in reversed(_modules(error.__traceback__)):
        if name.startswith("django.db."):
            return True
        if not name.startswith(CONVERTERS):
            return False
    return False


def _modules(traceback: TracebackType | None) -> list[str]:
    """The modules that the exception came through. The last module raised it."""
    names = []
    while traceback is not None:
        names.append(str(traceback.tb_frame.f_globals.get("__name__", "")))
        traceback = traceback.tb_next
    return names
