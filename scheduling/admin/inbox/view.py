"""The two views of the inbox: each failure, or one row for each cause. The last choice of a user is remembered."""

from __future__ import annotations

from django.http import HttpRequest

PARAMETER = "group"
BY_ERROR, EACH = "error", "each"
KEY = "scheduling_inbox_view"
"""The session's key of the last choice."""

FLAT_ONLY = ("fingerprint", "p", "o", "all")
"""Parameters of the URL that only the view of each failure has."""


def chosen(request: HttpRequest) -> bool | None:
    """Whether the user has chosen the view by error. None if the user has chosen neither view.

    A choice in the URL is stored in the session.
    """
    wanted = request.GET.get(PARAMETER)
    if wanted in (BY_ERROR, EACH):
        if request.session.get(KEY) != wanted:
            request.session[KEY] = wanted
        return wanted == BY_ERROR
    if any(name in request.GET for name in FLAT_ONLY):
        return False
    remembered = request.session.get(KEY)
    return remembered == BY_ERROR if remembered in (BY_ERROR, EACH) else None
