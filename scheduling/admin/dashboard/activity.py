"""The page "Activity": who did what, on all objects of this project, the newest first."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.apps import apps
from django.contrib.admin.models import ADDITION, DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.http import HttpRequest
from django.urls import NoReverseMatch
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from scheduling.admin.common.base import shown_entry
from scheduling.admin.common.seen_entries import seen_entries
from scheduling.admin.ui.links import admin_url
from scheduling.admin.ui.text import is_number
from scheduling.admin.ui.times import time_with_relative
from scheduling.core.targets import TARGET_KINDS
from scheduling.core.text import visible_text
from scheduling.models.visibility import visibility_by_groups

LISTED = 50
EDITS = 10
"""At most this many edits of an entry are shown. The history of the object shows all of them, and whole values."""
VALUE_MAX_CHARS = 200


class Line(NamedTuple):
    """One entry as the template shows it."""

    at: Any
    who: str
    user: int
    kind: str
    name: str
    address: str
    text: str
    edits: list[Any]
    more: int


def activity(request: HttpRequest, now: Any) -> dict[str, Any]:
    """The template context: one page of entries about objects that the user may view.

    The parameter `before` of the URL is the primary key of the last entry of the page before. Counting all entries
    would take long in an old installation. The parameter `user` chooses the entries of one user.
    """
    visible = _visible_models(request)
    rows = LogEntry.objects.filter(content_type__in=list(visible)).select_related("user").order_by("-pk")
    before, user = request.GET.get("before", ""), request.GET.get("user", "")
    if is_number(user):
        rows = rows.filter(user_id=int(user))
    newest = rows
    if is_number(before):
        rows = rows.filter(pk__lt=int(before))
    found, last = seen_entries(rows, visible, visibility_by_groups(request.user), LISTED + 1)
    more = found[LISTED - 1].pk if len(found) > LISTED else last
    older = f"before={more}" if more else ""
    chosen = newest.first() if is_number(user) and found else None
    kept = f"user={user}" if is_number(user) else ""
    return {
        "lines": [_line(entry, visible[entry.content_type_id or 0], now) for entry in found[:LISTED]],
        "older": "&".join(part for part in (kept, older) if part) if older else "",
        "first": not is_number(before),
        "kept": kept,
        "of": visible_text(chosen.user.get_username(), 150) if chosen is not None else "",
    }


def _visible_models(request: HttpRequest) -> dict[int, type[models.Model]]:
    """The models of this project that the user may view, by the primary key of their content type."""
    labels = {kind.model for kind in TARGET_KINDS.values()}
    own = {*apps.get_app_config("scheduling").get_models(), *map(apps.get_model, labels)}
    allowed = []
    for model in own:
        opts = model._meta
        names = (f"{opts.app_label}.{verb}_{opts.model_name}" for verb in ("view", "change"))
        if any(request.user.has_perm(name) for name in names):
            allowed.append(model)
    types = ContentType.objects.get_for_models(*allowed, for_concrete_models=False)
    return {content_type.pk: model for model, content_type in types.items()}


def _line(entry: LogEntry, model: type[models.Model], now: Any) -> Line:
    shown, opts = shown_entry(entry, model), model._meta
    address = ""
    if entry.action_flag != DELETION and is_number(entry.object_id or ""):  # plain SQL can write any text
        try:
            address = admin_url(f"{opts.app_label}_{opts.model_name}_change", entry.object_id)
        except NoReverseMatch:
            address = ""  # this site has no page of the object
    words = {ADDITION: _("Added"), DELETION: _("Deleted")}
    return Line(
        time_with_relative(entry.action_time, now),
        shown["who"],
        entry.user_id,
        str(capfirst(opts.verbose_name)),
        visible_text(entry.object_repr, 120),
        address,
        visible_text(shown["text"], VALUE_MAX_CHARS) or words.get(entry.action_flag, ""),
        [(visible_text(label, 80), _cut(old), _cut(new)) for label, old, new in shown["edits"][:EDITS]],
        max(len(shown["edits"]) - EDITS, 0),
    )


def _cut(value: str | None) -> str | None:
    return None if value is None else visible_text(value, VALUE_MAX_CHARS)
