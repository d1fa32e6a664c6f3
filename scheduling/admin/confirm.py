"""The page between asking and doing: what will happen to how many, and one button that does it by POST."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils.translation import gettext_lazy as _

from scheduling.admin.params_diff import Change
from scheduling.admin.params_form import MEDIA as PARAMS_MEDIA
from scheduling.admin.params_form import ParamsForm
from scheduling.admin.parts import MEDIA

TEMPLATE = "admin/scheduling/confirm.html"

Text = Any
"""A string or a lazy translation."""


@dataclass
class Confirmation:
    """What an operator reads before it is done.

    Args:
        lead: one sentence: what will be done, to how many.
        submit: the button's word.
        back: where "No, take me back" leads.
        facts: label and value pairs about a single object.
        groups: name and count pairs: what the selection is made of.
        changes: values that will differ, old and new.
        samples: some of the objects, safe HTML or text.
        warnings: sentences to heed.
        hidden: names and values to send along with the POST.
        ask_reason: show a field for a reason, which is required; `reason_optional`: which is not.
        params: a form for parameters, to be sent along.
        most_minutes: show a field for minutes over which to spread it, up to so many; 0 for none.
        minutes: what that field says.
        offer_canary: show a box for sending one of them first; `canary`: it is ticked.
        type_count: the number that must be typed to confirm; 0 for none.
        error: what was wrong with the POST that led here.
        danger: the button takes something away.
        blocked: it cannot be done as things are; there is no button.
    """

    title: Text
    lead: Text
    submit: Text
    back: str
    facts: Sequence[tuple[Text, Text]] = ()
    groups: Sequence[tuple[Text, int]] = ()
    changes: Sequence[Change] = ()
    samples: Sequence[Text] = ()
    more: int = 0
    warnings: Sequence[Text] = ()
    hidden: Sequence[tuple[str, Any]] = ()
    ask_reason: bool = False
    reason_optional: bool = False
    params: ParamsForm | None = None
    most_minutes: int = 0
    minutes: int = 0
    offer_canary: bool = False
    canary: bool = False
    type_count: int = 0
    reason: str = ""
    error: Text = ""
    danger: bool = False
    blocked: bool = False
    crumbs: Sequence[tuple[str, Text]] = field(default_factory=tuple)


def page(request: HttpRequest, model_admin: admin.ModelAdmin, confirmation: Confirmation) -> TemplateResponse:
    """The page itself, below the model's list."""
    request.current_app = model_admin.admin_site.name
    context = {
        **model_admin.admin_site.each_context(request),
        "opts": model_admin.opts,
        "media": MEDIA + PARAMS_MEDIA if confirmation.params is not None else MEDIA,
        "title": confirmation.title,
        "subtitle": None,
        "c": confirmation,
        "reason_label": _("Reason"),
        "has_view_permission": model_admin.has_view_permission(request),
    }
    return TemplateResponse(request, TEMPLATE, context)


def new_key() -> str:
    """A key for a page, to be sent back with its POST."""
    return str(uuid.uuid4())


def key_of(request: HttpRequest) -> uuid.UUID:
    """The page's own key, sent back by its POST: a second click on the same page meets the first one's row."""
    try:
        return uuid.UUID(request.POST.get("key", ""))
    except ValueError:
        return uuid.uuid4()
