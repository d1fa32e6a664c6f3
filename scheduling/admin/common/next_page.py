"""The page to show after an action: the page that the operator came from, with its filters."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest
from django.utils.http import url_has_allowed_host_and_scheme

NEXT = "next"
MAX_LENGTH = 2_000


def next_page(request: HttpRequest, default: str) -> str:
    """The address in the request's `next`, if it is on this site, else `default`."""
    address = request.POST.get(NEXT) or request.GET.get(NEXT, "")
    local = address.startswith("/") and url_has_allowed_host_and_scheme(address, allowed_hosts=None)
    return address if local and len(address) <= MAX_LENGTH else default


def with_next(address: str, request: HttpRequest) -> str:
    """An address of an action's page that later leads back to the page of this request."""
    return f"{address}?{urlencode({NEXT: request.get_full_path()})}"
