"""The two doors of a user: the pages of the admin, and the HTTP API. What each of them answers is told in one word."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client

from scheduling.operations.tokens import make_token
from tests.admin.walk import undone

NEEDS_PERMISSION = "its code asks for the permission"
NO_ROW = ("There is no ", "Already handled by someone else.")


class Word(StrEnum):
    """What a door has answered."""

    DONE = "done"
    REFUSED = "refused"
    MISSING = "there is no such row"
    LOGIN = "log in first"
    NOT_POSSIBLE = "the values or the present state do not allow it"


WORDS = {401: Word.LOGIN, 403: Word.REFUSED, 404: Word.MISSING, 409: Word.NOT_POSSIBLE, 422: Word.NOT_POSSIBLE}


@dataclass(frozen=True)
class Request:
    """A request to one of the doors.

    Args:
        body: the fields of a form, or the JSON of the API; None for a GET of the admin, and for no JSON.
        read: returns what the answer shows; for lists, for example, the keys of the rows. It may return a `Word`, which
            then counts instead of the status.
    """

    path: str
    body: Any = None
    read: Callable[[Any], Any] = lambda _response: None
    method: str = "GET"


@dataclass(frozen=True)
class Said:
    """What a door has answered, and what the answer shows."""

    word: Word
    seen: Any = None


def by_session(user: User) -> Client:
    """A client with the session of the user, for both doors."""
    client = Client()
    client.force_login(user)
    return client


def by_token(user: User, **limits: Any) -> Client:
    """A client with a new token of the user, for the API."""
    _token, secret = make_token(user, f"token {len(limits)}", **limits)
    return Client(headers={"Authorization": f"Bearer {secret}"})


def ask_admin(client: Client, request: Request, is_act: bool) -> Said:
    """Send the request to the admin, and roll back what it has written."""
    with undone():
        before = LogEntry.objects.count()
        response: Any = client.get(request.path) if request.body is None else client.post(request.path, request.body)
        said = _said_by_admin(response, request, is_act, LogEntry.objects.count() - before)
    client.cookies.pop("messages", None)  # the next page would show them
    return said


def _said_by_admin(response: Any, request: Request, is_act: bool, entries: int) -> Said:
    messages = " ".join(str(one) for one in response.wsgi_request._messages._queued_messages)
    if response.status_code == 403:
        word = Word.REFUSED
    elif response.status_code == 302 and response.url.startswith("/admin/login/"):
        word = Word.LOGIN
    elif any(said in messages for said in NO_ROW):
        word = Word.MISSING
    elif NEEDS_PERMISSION in messages:
        word = Word.REFUSED
    else:
        assert response.status_code in (200, 302), (request, response.status_code)
        word = Word.NOT_POSSIBLE if is_act and not entries else Word.DONE
    assert is_act or not entries, request
    assert (word is Word.DONE) >= (entries > 0), (request, word)
    return Said(word, request.read(response) if word is Word.DONE else None)


def ask_api(client: Client, request: Request, is_act: bool) -> Said:
    """Send the request to the API, and roll back what it has written."""
    data = "" if request.body is None else json.dumps(request.body)
    with undone():
        before = LogEntry.objects.count()
        response: Any = client.generic(request.method, f"/cron/{request.path}", data, "application/json")
        entries = LogEntry.objects.count() - before
        word = WORDS.get(response.status_code, Word.DONE)
        assert word is not Word.DONE or response.status_code < 300, (request, response.content)
        seen = request.read(response) if word is Word.DONE else None
    if isinstance(seen, Word):
        word, seen = seen, None
    assert (is_act and word is Word.DONE) == (entries > 0), (request, word, entries)
    return Said(word, seen)
