"""Finds out who sends a request: a token, or the session of a staff user in a browser. Both doors need staff users."""

from __future__ import annotations

import re
import traceback
from typing import Any
from urllib.parse import unquote

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone as clock
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables
from ninja.security import APIKeyCookie, HttpBearer
from ninja.utils import check_csrf

from scheduling.core.text import visible_text
from scheduling.http.problems import refusal
from scheduling.models.author import AuthorKind
from scheduling.operations.actor import Actor
from scheduling.operations.refused import Refused
from scheduling.operations.tokens import find_token, may

SECRET_IN_URL = re.compile(r"cron_[A-Za-z0-9]{4,16}_[A-Za-z0-9_-]{16,}")
SAFE_METHODS = ("GET", "HEAD")


class Caller(Actor):
    """An actor that came over HTTP.

    Args:
        owner: identifies the token or the user: `token:5` or `user:12`. Its idempotency keys and its limit are its own.
    """

    def __init__(self, user: Any, owner: str, via: str, limit: Any = None) -> None:
        super().__init__(user, via, limit)
        self.owner = owner

    @property
    def author_kind(self) -> AuthorKind:
        return AuthorKind.TOKEN if self.via else AuthorKind.USER


class TokenAuth(HttpBearer):
    """`Authorization: Bearer cron_…`."""

    @sensitive_variables()
    def __call__(self, request: HttpRequest) -> Caller | None:
        """The caller; None without the header.

        Raises:
            Refused: UNAUTHENTICATED. A wrong token is never tried as a session.
        """
        if not request.headers.get("Authorization"):
            return None
        try:
            return self.authenticate(request, _bearer(request))
        except Refused:
            raise
        except Exception as error:
            # In DEBUG, Django's report shows the local variables of each frame. The text of the traceback has none.
            error.add_note("".join(traceback.format_exception(error)))
            defect = error.with_traceback(None)
        raise defect

    @sensitive_variables()
    def authenticate(self, request: HttpRequest, token: str) -> Caller:
        """The caller with this secret."""
        found = find_token(token, clock.now())
        if found is None or not found.user.is_staff:
            # One sentence for all reasons: it must not tell which part of a guessed secret is right.
            raise refusal(
                "UNAUTHENTICATED", _("The token is unknown, expired or revoked, or its owner may not log in.")
            )
        via = _("token “%(name)s”") % {"name": visible_text(found.name, 60)}
        return Caller(found.user, f"token:{found.pk}", via, lambda permission: may(found, permission))


@sensitive_variables()
def _bearer(request: HttpRequest) -> str:
    """The text after the word Bearer and one space; empty if the header has another form."""
    scheme, _space, secret = request.headers["Authorization"].partition(" ")
    return secret if scheme.lower() == "bearer" else ""


class StaffSession(APIKeyCookie):
    """The session of a staff user. A request that changes something needs the CSRF token of the page."""

    param_name = settings.SESSION_COOKIE_NAME

    def __init__(self) -> None:
        super().__init__(csrf=False)  # ninja's own check would answer with a page

    def authenticate(self, request: HttpRequest, key: str | None) -> Caller | None:
        """The caller; None without a session.

        Raises:
            Refused: CSRF, or UNAUTHENTICATED if the user is not one of the staff.
        """
        user: Any = getattr(request, "user", None)
        if key is None or user is None or not user.is_authenticated:
            return None
        if not (user.is_active and user.is_staff):
            raise refusal("UNAUTHENTICATED", _("Only staff users may use the API."))
        if request.method not in SAFE_METHODS and check_csrf(request) is not None:
            raise refusal("CSRF", _("The header X-CSRFToken is missing or wrong. Programs use a token instead."))
        return Caller(user, f"user:{user.pk}", "HTTP")


def caller_of(request: HttpRequest) -> Caller:
    """Who sends the request. The doors have found it."""
    caller: Caller = request.auth  # type: ignore[attr-defined]
    return caller


def has_secret_in_url(request: HttpRequest) -> bool:
    """Whether the address has something like a token. Addresses stand in logs, so such a token is never accepted."""
    return SECRET_IN_URL.search(unquote(request.get_full_path())) is not None
