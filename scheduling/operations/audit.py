"""The audit trail: one LogEntry for every act of an operator. The entry for an edit has the old and the new values.

The message of an entry without edits is text, such as `cancel: asked`. The message of an entry with edits is JSON.
Django's own pages can show this JSON, too:
`[{"changed": {"fields": ["status"], "text": "", "edits": [{"name": "status", "old": "yes", "new": "no"}]}}]`.

An entry about a row with a group also has the group's primary key, as `group` beside `edits`. The row may be deleted
later, and its entries must not become visible to everyone then. Such an entry is always JSON.

Entries contain the database names of fields, not translated labels. So an entry does not depend on the language of the
user. A parameter is named `params.<name>`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Protocol

from django.contrib.admin.models import CHANGE, LogEntry
from django.core.exceptions import ObjectDoesNotExist
from django.db import models
from django.forms import ModelChoiceField, ModelForm, ModelMultipleChoiceField

from scheduling.core.text import visible_text
from scheduling.handlers import Handler
from scheduling.handlers.secret_params import masked
from scheduling.models.entry_group import entry_of_group, group_of
from scheduling.operations import params_diff
from scheduling.operations.params_diff import Change
from scheduling.pings.address import shown

VALUE_MAX_CHARS = 200
"""Each value in an entry is cut after this many characters."""
PARAMS_LIMIT = 50
"""An entry lists at most this many parameters."""


class HasUser(Protocol):
    """A request, or an actor that came through another door."""

    @property
    def user(self) -> Any: ...


def record(
    by: HasUser, objects: Iterable[models.Model], text: str, edits: Sequence[Change] = (), flag: int = CHANGE
) -> None:
    """Write one audit entry for each object. One insert writes the entries of all objects of one group.

    Args:
        by: in whose name. If it is an `Actor`, the entry also says through which door it came.
        flag: ADDITION, CHANGE or DELETION of Django's log.
    """
    found: dict[int | None, list[models.Model]] = {}
    for row in objects:
        found.setdefault(group_of(row), []).append(row)
    if via := getattr(by, "via", ""):
        text = f"{text} ({via})" if text else via
    if by.user is not None and by.user.pk is not None:
        for group, rows in found.items():
            LogEntry.objects.log_actions(by.user.pk, rows, flag, message(text, edits, group))


def message(text: str, edits: Sequence[Change] = (), group: int | None = None) -> Any:
    """The `change_message` of an entry: a text if there is nothing else, else a list that Django stores as JSON."""
    if not edits:
        return text if group is None else entry_of_group(text, group)
    fields = [edit.name for edit in edits]
    if text:
        # Django's own pages show only the names of the fields, so the text is added to the last name.
        fields[-1] += f" ({text})"
    own = {} if group is None else {"group": group}
    return [{"changed": {"fields": fields, "text": text, "edits": [asdict(edit) for edit in edits], **own}}]


def read(entry: LogEntry) -> tuple[str, list[Change]]:
    """The text and the edits of an entry. An entry that was not written by this module has only a text."""
    try:
        stored = json.loads(entry.change_message)[0]["changed"]
        return stored["text"], [Change(**edit) for edit in stored["edits"]]
    except (ValueError, LookupError, TypeError):
        return entry.get_change_message(), []


def stored_group(entry: LogEntry) -> int | None:
    """The group that the row had when the entry was written; None if it had none."""
    try:
        found = json.loads(entry.change_message)[0]["changed"].get("group")
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    return found if type(found) is int else None


def form_edits(form: ModelForm, handler: Handler | None = None) -> list[Change]:
    """The fields that a valid form changed, with old and new values.

    Secret parameters are masked, because users who may not edit parameters may still read audit entries.

    This function reads two optional attributes of the form:

    - `former` maps field names to stored values. Without `former`, the form's initial values count as stored.
    - `former_code` is the handler for which the stored parameters were written.
    """
    former, other = getattr(form, "former", None) or form.initial, getattr(form, "former_code", None)
    found = []
    for name in form.changed_data:
        old, field = former.get(name), form.fields[name]
        if isinstance(field, ModelMultipleChoiceField):
            found.append(Change(name, _names(old), _names(form.cleaned_data.get(name))))
            continue
        if isinstance(field, ModelChoiceField) and field.queryset is not None and old is not None:
            old = field.queryset.filter(pk=old).first() or old
        found += _edits(name, old, form.cleaned_data.get(name), handler, other)
    return found


def snapshot(row: models.Model, names: Iterable[str]) -> dict[str, Any]:
    """The present values of these fields, for `edits_since`. A related row is kept as a row."""
    return {name: _present(row, name) for name in names}


def _present(row: models.Model, name: str) -> Any:
    """The value of a field. Plain SQL may have deleted a related row; then its key."""
    try:
        value = getattr(row, name)
    except ObjectDoesNotExist:
        value = None
    return getattr(row, f"{name}_id", None) if value is None else value


def edits_since(
    former: Mapping[str, Any], row: models.Model, handler: Handler | None, other: Handler | None
) -> list[Change]:
    """The fields whose values differ from a former `snapshot` of the row.

    Args:
        handler: the present handler of the row.
        other: the handler for which the former params were written.
    """
    found = []
    for name, old in former.items():
        if (new := _present(row, name)) != old:
            found += _edits(name, old, new, handler, other)
    return found


def deletion_edits(row: models.Model, handler: Handler | None = None) -> list[Change]:
    """The old values of a deleted row. Empty columns and columns that are not editable are left out."""
    found = []
    for field in row._meta.concrete_fields:
        value = getattr(row, field.attname)
        if not field.editable or field.primary_key or value in (None, "", {}):
            continue
        if field.is_relation:
            value = _present(row, field.name) or value
        found += _edits(field.name, value, {} if isinstance(value, dict) else None, handler)
    return found


def ping_url_edits(old: str, new: str) -> list[Change]:
    """The edit of a schedule's ping URL. It is a secret, so only the name of an environment variable is recorded."""
    return [] if old == new else [Change("ping_url", _value(shown(old)), _value(shown(new)))]


def params_edits(handler: Handler | None, old: Any, new: dict[str, Any], other: Handler | None = None) -> list[Change]:
    """One edit for each parameter that differs, at most `PARAMS_LIMIT`. A further edit says how many more differ.

    Args:
        old: the old parameters. Plain SQL may have written a value that is not a JSON object. Such a value counts as
            empty.
        other: the handler for which `old` was written; None if this is the same handler as `handler`.
    """
    found = params_diff.changes(handler, old if isinstance(old, dict) else {}, new, VALUE_MAX_CHARS, other)
    edits = [replace(change, name=f"params.{change.name}") for change in found[:PARAMS_LIMIT]]
    if len(found) > PARAMS_LIMIT:
        edits.append(Change("params", "…", f"and {len(found) - PARAMS_LIMIT} more"))
    return edits


def _edits(name: str, old: Any, new: Any, handler: Handler | None, other: Handler | None = None) -> list[Change]:
    if name == "ping_url":
        return ping_url_edits(old, new)
    if name == "after":
        # Users who see this schedule need not see the other one, so its name does not stand in the history.
        old, new = (None if value is None else f"schedule {getattr(value, 'pk', value)}" for value in (old, new))
    if name == "params":
        if isinstance(old, dict) and isinstance(new, dict):
            return params_edits(handler, old, new, other)
        old, new = (masked(other, masked(handler, value)) for value in (old, new))
    return [Change(name, _value(old), _value(new))]


def _names(rows: Iterable[Any] | None) -> str | None:
    """The names of the chosen rows, in alphabetical order."""
    return visible_text(", ".join(sorted(str(row) for row in rows or ())), VALUE_MAX_CHARS) or None


def _value(value: Any) -> str | None:
    match value:
        case None | "":
            return None
        case bool():
            return "yes" if value else "no"
        case dict() | list():
            value = json.dumps(value, ensure_ascii=False, default=str)
    return visible_text(value, VALUE_MAX_CHARS)
