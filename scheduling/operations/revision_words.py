"""Says in words what a revision has changed, for pages and commands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db.models import Model
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduling.core.revisions import NEW, OLD, PARAMS, text_of
from scheduling.core.targets import TARGET_KINDS
from scheduling.core.text import visible_text
from scheduling.models import Calendar, ScheduleRevision
from scheduling.models.author import AuthorKind
from scheduling.models.schedule_revision import RevisionKind
from scheduling.operations.params_diff import Change

NAME_MAX_CHARS, VALUE_MAX_CHARS = 120, 500
MOST_CHANGES = 100
"""At most so many changed values of one revision are told."""

Names = dict[tuple[str, int], str]


def key_word(key: str) -> str:
    """The name of a column or of a parameter, as audit entries have it: `worker`, `params.region`."""
    return key if key.startswith(PARAMS) else key.removesuffix("_id")


def changes_in_words(revision: ScheduleRevision, names: Names | None = None) -> list[Change]:
    """What the revision has changed: the name, the old and the new value as text."""
    edits = list(revision.changes.items())
    known = names_in([revision]) if names is None else names
    found = [
        Change(
            visible_text(key_word(key), NAME_MAX_CHARS),
            *(_said(key, edit[side], known) if side in edit else None for side in (OLD, NEW)),
        )
        for key, edit in edits[:MOST_CHANGES]
    ]
    if len(edits) > MOST_CHANGES:
        found.append(Change("…", None, _("and %(count)s more") % {"count": len(edits) - MOST_CHANGES}))
    return found


def names_in(revisions: Iterable[ScheduleRevision]) -> Names:
    """The names of the rows that the changes of these revisions name. A row that is gone has none."""
    wanted: dict[str, set[int]] = {}
    revisions = list(revisions)
    for revision in revisions:
        for key, edit in revision.changes.items():
            if (model := _model(key)) is not None:
                wanted.setdefault(key, set()).update(value for value in edit.values() if type(value) is int)
    found = Names()
    for key, keys in wanted.items():
        model = _model(key)
        rows = model._default_manager.filter(pk__in=keys) if model is not None else ()
        found |= {(key, row.pk): str(row) for row in rows}
    return found | _names_for_all(revisions)


def _names_for_all(revisions: Iterable[ScheduleRevision]) -> Names:
    """The names of calendars that belong to no group, so that all users see them."""
    edits = [revision.changes["calendar_id"] for revision in revisions if "calendar_id" in revision.changes]
    keys = {value for edit in edits for value in edit.values() if type(value) is int}
    rows = Calendar.objects.filter(pk__in=keys, group=None).values_list("pk", "name") if keys else ()
    return {("calendar_id", pk): str(name) for pk, name in rows}


def who(revision: ScheduleRevision) -> str:
    """In whose name the change was made."""
    if revision.author:
        return visible_text(revision.author, 200)
    kinds = dict(AuthorKind.choices)
    return str(kinds.get(revision.author_kind, visible_text(revision.author_kind, 20)))


def what(revision: ScheduleRevision) -> str:
    """What kind of change it was."""
    if revision.undoes is not None:
        return _("takes back to, or undoes, revision %(number)s") % {"number": revision.undoes}
    kinds = dict(RevisionKind.choices)
    return str(kinds.get(revision.kind, visible_text(revision.kind, 20)))


def _model(key: str) -> type[Model] | None:
    """The model of the rows that a column names by their keys."""
    column = key.removesuffix("_id")
    if column in TARGET_KINDS:
        return apps.get_model(TARGET_KINDS[column].model)
    models: dict[str, Any] = {"user_id": get_user_model(), "group_id": Group}
    return models.get(key)


NUMBERED = {"after_id": gettext_lazy("schedule %(id)s"), "calendar_id": gettext_lazy("calendar %(id)s")}
"""Columns that name rows which not each reader of the schedule may see. Then they are told by their ids."""


def _said(key: str, value: Any, names: Names) -> str | None:
    if value is None or value == "":
        return None
    if _model(key) is not None and type(value) is int:
        return visible_text(names.get((key, value), f"#{value}"), VALUE_MAX_CHARS)
    if type(value) is int and (key, value) in names:
        return visible_text(names[key, value], VALUE_MAX_CHARS)
    if key in NUMBERED:
        return visible_text(NUMBERED[key] % {"id": value}, VALUE_MAX_CHARS)
    if isinstance(value, bool) and not key.startswith(PARAMS):
        return "yes" if value else "no"
    if key.startswith(PARAMS) and not isinstance(value, str):
        return visible_text(text_of(value), VALUE_MAX_CHARS)
    return visible_text(value, VALUE_MAX_CHARS)
