"""Refuses parameters of an address that it does not have: a mistyped filter would select everything."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext as _

from scheduling.core.text import visible_text
from scheduling.http.documents import openapi
from scheduling.operations.refused import Problem, Refused

View = Callable[..., HttpResponseBase]


@lru_cache(maxsize=1)
def _known() -> dict[tuple[str, str], frozenset[str]]:
    """Maps the path of an address, such as `/schedulers/{scheduler_id}`, and a method to the names of parameters."""
    return {
        (path, method.upper()): frozenset(one["name"] for one in found.get("parameters", ()) if one["in"] == "query")
        for path, methods in openapi("/")["paths"].items()
        for method, found in methods.items()
    }


def known_only(view: View, route: str) -> View:
    """The view of an address, which refuses other parameters.

    Args:
        route: the route as Django writes it, such as `schedulers/<scheduler_id>`.
    """
    path = "/" + route.replace("<", "{").replace(">", "}")

    @wraps(view)
    def inner(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        names = _known().get((path, str(request.method)))
        if names is not None and (unknown := sorted(request.GET.keys() - names)):
            said = _("This address has no such parameter.")
            raise Refused.invalid(Problem(visible_text(name, 100), "unknown", said) for name in unknown)
        return view(request, *args, **kwargs)

    return inner
