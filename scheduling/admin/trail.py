"""The trail: a LogEntry for everything an operator does, with old and new values for edits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.db import models
from django.dispatch import receiver
from django.forms import ModelChoiceField, ModelForm
from django.http import HttpRequest

from scheduling.admin import params_diff
from scheduling.admin.params_model import masked
from scheduling.admin.text import told
from scheduling.models import Replay
from scheduling.registry import Handler
from scheduling.signals import executions_replayed

EMPTY = "(empty)"
LIMIT = 200
"""Characters of one value."""
_NO_NAME = re.compile(r"[\s:;]")


def record(request: HttpRequest, objects: Iterable[models.Model], message: str) -> None:
    """Write one entry for each object, in one insert."""
    rows = list(objects)
    if rows and request.user.pk is not None:
        LogEntry.objects.log_actions(request.user.pk, rows, CHANGE, message)


@receiver(executions_replayed)
def record_replayed(executions: Iterable[models.Model], replay: Replay, **_kwargs: Any) -> None:
    """What a producer sends of a replay is the doing of whoever asked for it, and so are its entries."""
    if replay.user_id is not None:  # the account may be deleted by now; the execution's reason has the name
        said = f"republish: replay {replay.pk}"
        LogEntry.objects.log_actions(replay.user_id, executions, CHANGE, said)


def edits(
    form: ModelForm,
    handler: Handler | None = None,
    former: Mapping[str, Any] | None = None,
    other: Handler | None = None,
) -> str:
    """What a valid form changed: `schedule: 0 8 * * * -> 0 9 * * *; active: yes -> no`.

    Fields go by their names in the database, so that entries of all languages read alike. Values
    of secret parameters are hidden: a trail is read by more people than may edit.

    Args:
        former: the stored values, where the form shows them otherwise.
        other: the code that the stored parameters were written for, where that is not `handler`.
    """
    changes = []
    for name in form.changed_data:
        old, new = (former or form.initial).get(name), form.cleaned_data.get(name)
        field = form.fields[name]
        if isinstance(field, ModelChoiceField) and field.queryset is not None and old is not None:
            old = field.queryset.filter(pk=old).first() or old
        if name == "params":
            if isinstance(old, dict) and isinstance(new, dict):
                changes += _params(handler, old, new, other)
                continue
            old, new = (masked(other, masked(handler, each)) for each in (old, new))
        changes.append(f"{name}: {_value(old)} -> {_value(new)}")
    return "; ".join(changes)


def removed(row: models.Model, handler: Handler | None = None) -> str:
    """What stood in a row that is deleted: `schedule: 0 8 * * * -> (empty); active: yes -> (empty)`.

    Of its columns those that people fill in, without those that are empty.
    """
    said = []
    for field in row._meta.concrete_fields:
        value = getattr(row, field.attname)
        if not field.editable or field.primary_key or value in (None, "", {}):
            continue
        if field.name == "params" and isinstance(value, dict):
            said += _params(handler, value, {})
            continue
        if field.is_relation:
            value = getattr(row, field.name) or value
        said.append(f"{field.name}: {_value(value)} -> {EMPTY}")
    return "; ".join(said)


def _params(
    handler: Handler | None, old: dict[str, Any], new: dict[str, Any], other: Handler | None = None
) -> list[str]:
    """One by one: of two long objects nobody would find what differs."""
    found = params_diff.changes(handler, old, new, LIMIT, other)
    said = [f"params.{_NO_NAME.sub('_', each.name)}: {_or_empty(each.old)} -> {_or_empty(each.new)}" for each in found]
    if len(said) > params_diff.MOST:
        said[params_diff.MOST :] = [f"params: and {len(said) - params_diff.MOST} more"]
    return said


def _or_empty(value: str | None) -> str:
    return EMPTY if value is None else told(value)


def _value(value: Any) -> str:
    match value:
        case None | "":
            return EMPTY
        case bool():
            return "yes" if value else "no"
        case dict() | list():
            return told(json.dumps(value, ensure_ascii=False, default=str), LIMIT)
        case _:
            return told(value, LIMIT)
