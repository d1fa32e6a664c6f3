"""Sends hostile requests to the admin as bytes, as any client can, and says what came of each request."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_from_bytes

import pytest
from django.http import QueryDict
from django.test import Client
from django.utils.datastructures import MultiValueDict

from tests.admin.walk import logged_in_after, text_of
from tests.hostile.request_values import Value, as_bytes, shown

ANSWERS = (200, 302, 400, 403, 404, 405)
"""Status codes of valid answers. A GET of an address that only takes a POST is 405."""

BOUNDARY = b"aVeryRareBoundary"

Pairs = Sequence[tuple[str, "Value | Upload"]]


@dataclass(frozen=True)
class Upload:
    """A file that is sent in a field of a form."""

    content: bytes


@dataclass
class Answer:
    """What came of a request.

    If the view raised an exception, `status` is 500, `text` is the exception's text, and `error` says where.
    """

    status: int
    text: str = ""
    response: Any = None
    error: str = ""


def query_of(pairs: Pairs) -> str:
    """Return a query string. The bytes of names and values are percent-encoded."""
    return "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in pairs if not isinstance(value, Upload))


def body_of(pairs: Pairs) -> tuple[bytes, str]:
    """Return the body of a POST and its content type. Only a form with a file is sent as multipart."""
    if not any(isinstance(value, Upload) for _name, value in pairs):
        return query_of(pairs).encode(), "application/x-www-form-urlencoded"
    parts = []
    for name, value in pairs:
        head = b'Content-Disposition: form-data; name="' + as_bytes(name).replace(b'"', b"%22") + b'"'
        if isinstance(value, Upload):
            head += b'; filename="a.txt"\r\nContent-Type: text/plain'
        content = value.content if isinstance(value, Upload) else as_bytes(value)
        parts.append(b"--" + BOUNDARY + b"\r\n" + head + b"\r\n\r\n" + content + b"\r\n")
    return b"".join(parts) + b"--" + BOUNDARY + b"--\r\n", f"multipart/form-data; boundary={BOUNDARY.decode()}"


def described(pairs: Pairs) -> str:
    """Return the pairs for the message of a failure."""
    return ", ".join(f"{shown(name)}={value!r:.80}" if isinstance(value, Upload) else f"{shown(name)}={shown(value)}"
                     for name, value in pairs)  # fmt: skip


def ask(client: Client, method: str, path: str, query: str = "", body: tuple[bytes, str] | None = None) -> Answer:
    """Send one request and read its answer to the end. The client stays logged in, even if the request logs it out."""
    content, content_type = body or (b"", "application/octet-stream")
    try:
        with logged_in_after(client):
            response = client.generic(method, path, content, content_type, QUERY_STRING=query)
            return Answer(response.status_code, text_of(response), response)
    except Exception as error:
        return Answer(500, str(error), error=_place(error))


@contextmanager
def asked_names() -> Iterator[set[str]]:
    """Collect the names of the parameters that views look up in query strings and forms inside the block.

    So the tests know each parameter of each view without a list of them.
    """
    names: set[str] = set()

    def note(name: object) -> None:
        if isinstance(name, str):
            names.add(name)

    def getitem(self: Any, name: Any) -> Any:
        note(name)
        return MultiValueDict.__getitem__(self, name)

    def getlist(self: Any, name: Any, default: Any = None) -> Any:
        note(name)
        return MultiValueDict.getlist(self, name, default)

    def contains(self: Any, name: Any) -> bool:
        note(name)
        return dict.__contains__(self, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(QueryDict, "__getitem__", getitem, raising=False)
        patch.setattr(QueryDict, "getlist", getlist, raising=False)
        patch.setattr(QueryDict, "__contains__", contains, raising=False)
        yield names


def _quoted(value: Value) -> str:
    return quote_from_bytes(as_bytes(value), safe="")


def _place(error: Exception) -> str:
    """The exception's type, and the last places in the code that it came through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/scheduling/" in frame.filename or "/reports/" in frame.filename]
    last = [*own[-1:], *frames[-1:]]
    places = ", ".join(f"{'/'.join(frame.filename.split('/')[-3:])}:{frame.lineno}" for frame in last)
    return f"{type(error).__name__} ({places})"
