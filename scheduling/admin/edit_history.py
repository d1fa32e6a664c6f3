"""History of edits: what was changed, by whom, from what to what, as the trail has it."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from scheduling.admin.parts import MEDIA
from scheduling.admin.text import shown
from scheduling.admin.trail import EMPTY

_HEAD = re.compile(r"(?:^|; )(?P<name>[a-z_]+(?:\.[^\s:]+)?): ")
ARROW = " -> "
SAID = 20_000
"""Characters of an entry."""


@dataclass(frozen=True)
class Edit:
    """A field's value before and after; None for one that was empty. `whole` is what cannot be told apart."""

    name: str
    old: str | None = None
    new: str | None = None
    whole: str = ""


def edits_of(message: str, names: Collection[str]) -> list[Edit]:
    """The edits that an entry of the trail tells; empty when it tells something else.

    Args:
        names: the fields that there are; what merely looks like one is text.
    """
    heads = [found for found in _HEAD.finditer(message) if found["name"].partition(".")[0] in names]
    if not heads or heads[0].start() != 0:
        return []
    ends = [*(found.start() for found in heads[1:]), len(message)]
    return [_edit(head["name"], message[head.end() : end]) for head, end in zip(heads, ends, strict=True)]


def _edit(name: str, said: str) -> Edit:
    old, arrow, new = said.partition(ARROW)
    # Entries of before values were kept apart: more than one arrow says nothing certain.
    if not arrow or ARROW in new:
        return Edit(name, whole=shown(said))
    return Edit(name, None if old == EMPTY else shown(old), None if new == EMPTY else shown(new))


class EditHistory(admin.ModelAdmin):
    """Gives a model's history page a table for each edit."""

    object_history_template = "admin/scheduling/object_history.html"

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The stock page's entries, each taken apart."""
        response = super().history_view(request, object_id, {"media": MEDIA, **(extra_context or {})})
        if isinstance(response, TemplateResponse) and response.context_data is not None:
            labels = {field.name: capfirst(str(field.verbose_name)) for field in self.opts.fields}
            for entry in response.context_data.get("action_list", ()):
                # Who may name himself, or write to the log by other ways, writes here too.
                entry.who = shown(" ".join(filter(None, [entry.user.get_username(), _full_name(entry.user)])), 200)
                entry.said = shown(entry.get_change_message(), SAID)
                found = edits_of(entry.get_change_message(), labels)
                entry.edits = [(_label(each.name, labels), each) for each in found]
        return response


def _full_name(user: Any) -> str:
    name = getattr(user, "get_full_name", str)()
    return f"({name})" if name else ""


def _label(name: str, labels: dict[str, str]) -> str:
    column, _dot, part = name.partition(".")
    return _("%(field)s: %(name)s") % {"field": labels[column], "name": shown(part)} if part else labels[column]
