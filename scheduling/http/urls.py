"""The addresses of the API. They answer only while CRON_API is on."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.urls import URLPattern, include, path, re_path

try:
    from scheduling.http.api import api
except ModuleNotFoundError as error:
    if error.name != "ninja":
        raise
    raise ImproperlyConfigured("The HTTP API needs django-ninja: pip install 'cronsite[api]'") from None
from scheduling.http.documents import docs_page, openapi_document
from scheduling.http.guarded import guarded, nothing_here, read_only
from scheduling.http.queries import known_only


def _guarded(patterns: list[Any]) -> list[URLPattern]:
    return [
        URLPattern(one.pattern, guarded(known_only(one.callback, str(one.pattern))), one.default_args, one.name)
        for one in patterns
        if isinstance(one, URLPattern)
    ]


_patterns = [
    path("openapi.json", guarded(read_only(openapi_document)), name="openapi"),
    path("docs", guarded(read_only(docs_page)), name="docs"),
    *_guarded(api.urls[0]),
    re_path(r"^.*$", guarded(nothing_here)),
]
urlpatterns = [path("", include((_patterns, "cron_api")))]
