"""The page that asks an operator to confirm an action. It says what will happen, and to how many rows."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib.admin import helpers
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from scheduling.admin.common.pages import Pages
from scheduling.admin.params.form import MEDIA as PARAMS_MEDIA
from scheduling.admin.params.form import ParamsForm
from scheduling.admin.ui.media import MEDIA
from scheduling.operations.params_diff import Change

TEMPLATE = "admin/scheduling/confirm.html"

SAMPLES = 10
"""The page lists at most this many objects of a selection."""

SOME = _("Some of them")
PARAMETER = _("Parameter")

KEEP = _("Cancel")
"""The label of the link that leaves everything as it is."""

Text = Any
"""A string or a lazy translation."""


@dataclass
class Confirmation:
    """What an operator reads before an action.

    Args:
        lead: one sentence that says what will be done, and to how many objects.
        submit: the label of the button.
        back: the URL of the link that leaves everything as it is.
        keep: the label of this link.
        facts: pairs of label and value about a single object.
        groups: pairs of a target's name and the number of selected objects with this target.
        changes: the values that will change, each with its old and its new value.
        changed_kind: what kind of values these are.
        samples: some of the objects, as safe HTML or text.
        some: the heading of the samples if there are more objects.
        more: how many objects are selected besides the samples.
        warnings: sentences that the operator should read before the POST.
        hidden: pairs of name and value that the POST sends back.
        form: the questions to the operator. Errors of the form are shown at the top.
        params: a form for parameters. The POST sends the values of this form, too.
        error: a sentence about a problem with the last POST, besides the errors of the form.
        danger: whether the action ends or removes something. If so, the button has a warning colour.
        blocked: whether the action is impossible now. If so, the page has no button.
        crumbs: pairs of URL and label, for the breadcrumb links between the model's list and this page.
    """

    title: Text
    lead: Text
    submit: Text
    back: str
    facts: Sequence[tuple[Text, Text]] = ()
    groups: Sequence[tuple[Text, int]] = ()
    changes: Sequence[Change] = ()
    changed_kind: Text = PARAMETER
    samples: Sequence[Text] = ()
    some: Text = SOME
    more: int = 0
    warnings: Sequence[Text] = ()
    hidden: Sequence[tuple[str, Any]] = ()
    form: forms.Form | None = None
    params: ParamsForm | None = None
    error: Text = ""
    danger: bool = False
    blocked: bool = False
    crumbs: Sequence[tuple[str, Text]] = ()
    keep: Text = KEEP

    @property
    def lines(self) -> list[Text]:
        """The samples, each different one once. A line that stands for several begins with their number: `10 x`."""
        counted = Counter(self.samples)
        return [format_html("{} x {}", count, text) if count > 1 else text for text, count in counted.items()]

    def response(self, request: HttpRequest, model_admin: Pages) -> TemplateResponse:
        """The response with the confirmation page."""
        context = {
            "media": MEDIA + PARAMS_MEDIA if self.params is not None else MEDIA,
            "title": self.title,
            "c": self,
            "has_view_permission": model_admin.has_view_permission(request),
        }
        return model_admin.page_response(request, TEMPLATE, **context)


def reason_field(limit: int, help_text: Text, **options: Any) -> forms.CharField:
    """A field for a reason in free text, with at most `limit` characters.

    Only the browser enforces the limit. The browser counts a line break as one character, but sends a line
    break as two characters. So a check on the server would refuse some texts that the browser accepts.
    """
    widget = forms.Textarea(attrs={"rows": 3, "cols": 60, "maxlength": limit})
    return forms.CharField(label=_("Reason"), help_text=help_text, widget=widget, **options)


def action_fields(request: HttpRequest, action: str) -> list[tuple[str, Any]]:
    """The hidden fields of a POST that repeats a list's action on the same rows, as pairs of name and value.

    If the operator selected all rows that match the filter, no primary keys are sent. The POST applies the filter in
    the URL again.
    """
    across = request.POST.get("select_across") == "1"
    chosen = ["all"] if across else request.POST.getlist(helpers.ACTION_CHECKBOX_NAME)
    rows = [(helpers.ACTION_CHECKBOX_NAME, pk) for pk in chosen]
    return [("action", action), ("post", "yes"), ("select_across", int(across)), *rows]


def new_key() -> str:
    """A new random key for a page. The page's POST sends the key back, so that the server recognises a second click."""
    return str(uuid.uuid4())


def key_of(request: HttpRequest) -> uuid.UUID:
    """The key that the POST sends; a new key if the POST has no valid key."""
    try:
        return uuid.UUID(request.POST.get("key", ""))
    except ValueError:
        return uuid.uuid4()
