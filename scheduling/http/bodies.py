"""Reads the bodies of requests. What is too large, too deep or no JSON is refused before it is parsed further."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from django.http.request import UnreadablePostError
from django.utils.translation import gettext as _
from ninja.parser import Parser

from scheduling.core import json_bounds
from scheduling.http.problems import refusal

LARGEST_BODY = 1_000_000
"""Bytes."""


class BoundedParser(Parser):
    """Parses JSON of at most LARGEST_BODY bytes that each database can store."""

    def parse_body(self, request: HttpRequest) -> Any:
        """The JSON object.

        Raises:
            Refused: NOT_JSON, TOO_LARGE or BAD_JSON.
        """
        text = read_body(request)
        if not text:
            return {}
        if request.content_type != "application/json":
            raise refusal("NOT_JSON", _("The body is JSON: send the header Content-Type: application/json."))
        try:
            found = json_bounds.loads(text, object_of=_unique)
        except json_bounds.NotStorable as error:
            raise refusal("BAD_JSON", error.about(_("The body"))) from None
        except UnicodeDecodeError:
            raise refusal("BAD_JSON", _("The body is not UTF-8.")) from None
        if not isinstance(found, dict):
            raise refusal("BAD_JSON", _("The body is a JSON object."))
        return found


def read_body(request: HttpRequest) -> bytes:
    """The bytes of the body.

    Raises:
        Refused: TOO_LARGE; LENGTH_REQUIRED; BAD_REQUEST if the connection was cut, or the length is no number.
    """
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not request.META.get("CONTENT_LENGTH") and request.headers.get("Transfer-Encoding"):
        # Django would read an empty body: a run would begin without the params that were sent.
        raise refusal("LENGTH_REQUIRED", _("Send the header Content-Length. A body in chunks is not read."))
    if not (length.isascii() and length.isdecimal()):
        raise refusal("BAD_REQUEST", _("The header Content-Length is a whole number."))
    too_large = refusal("TOO_LARGE", _("The body has more than %(most)s bytes.") % {"most": LARGEST_BODY})
    if len(length) > 15 or int(length) > LARGEST_BODY:
        raise too_large
    try:
        body: bytes = request.body
    except RequestDataTooBig:
        raise too_large from None
    except UnreadablePostError:
        raise refusal("BAD_REQUEST", _("The body could not be read to its end.")) from None
    if len(body) > LARGEST_BODY:
        raise too_large
    if len(body) < int(length):
        # Web servers hand over what they got before the connection was cut. It could be another request than was meant.
        raise refusal("BAD_REQUEST", _("The body could not be read to its end."))
    return body


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object. A name that stands twice in it is a typing error, and programs do not agree which value counts."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise json_bounds.NotStorable("twice", "names a value twice in one object.")
    return found
