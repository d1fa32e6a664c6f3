"""The page that shows a new secret, once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse

from scheduling.admin.common import hold_notice
from scheduling.admin.common.pages import Pages


def secret_page(
    pages: Pages,
    request: HttpRequest,
    secret: str,
    *,
    title: str,
    use: str,
    facts: Sequence[tuple[Any, Any]],
    back: str,
) -> HttpResponse:
    """The answer to the POST that has made the secret. So no session, message or address has the secret.

    Args:
        use: the sentence that says what the secret is for.
        facts: labels and values that say what the secret belongs to.
        back: the address that the button leads to; empty for no button.
    """
    response = pages.page_response(
        request, "admin/scheduling/secret.html", title=title, secret=secret, use=use, facts=facts, back=back
    )
    hold_notice.add_notice(request, response)
    response["Cache-Control"] = "no-store"
    return response.render()  # here, where reports of errors have no variables
