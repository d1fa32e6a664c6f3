"""The button "Continue" in a message, for an action that has used up the time of its request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest
from django.middleware.csrf import get_token
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.admin.common.confirm import action_fields


def remaining(request: HttpRequest, count: int, action: str, answers: Mapping[str, Any]) -> SafeString:
    """How many rows are left, and a form that repeats the action of this request on them without a new question.

    Args:
        answers: what the operator has answered on the confirmation page, by the names of the fields.
    """
    said = ngettext("%(count)d remains.", "%(count)d remain.", count) % {"count": count}
    fields = [("csrfmiddlewaretoken", get_token(request)), *action_fields(request, action), *answers.items()]
    hidden = format_html_join("", '<input type="hidden" name="{}" value="{}">', fields)
    button = format_html('<button type="submit" class="button">{}</button>', _("Continue"))
    form = '{} <form method="post" action="{}" class="sch-continue">{}{}</form>'
    return format_html(form, said, request.get_full_path(), hidden, button)
