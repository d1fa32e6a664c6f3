"""Answers a request with 400 if its address has more parameters than DATA_UPLOAD_MAX_NUMBER_FIELDS."""

from __future__ import annotations

from collections.abc import Callable

from django.core.exceptions import TooManyFieldsSent
from django.http import HttpRequest, HttpResponseBadRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _


class ManyParameters:
    """A middleware for all pages.

    Django refuses such an address where it is read first. With DEBUG, Django's page about the error reads it once more,
    and the answer would be 500.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        try:
            len(request.GET)
        except TooManyFieldsSent:
            text = _("The address has too many parameters. Nothing was changed.")
            return HttpResponseBadRequest(text, content_type="text/plain; charset=utf-8")
        return self.get_response(request)
