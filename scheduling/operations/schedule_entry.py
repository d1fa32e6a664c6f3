"""Entries of schedule files: how a schedule stands in a file, and which values an entry asks for.

An entry states the whole schedule. A value that it leaves out is the default of a new schedule, with two exceptions:

- A file holds no secrets. A secret param that the entry leaves out keeps the value of the row. So does the ping URL.
- A pause is the operators' decision. It stays as it is, unless the entry has `status`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from django.utils.translation import gettext as _
from pydantic import Field

from scheduling.core import json_bounds
from scheduling.core.chat_services import variable_of
from scheduling.core.cron import ZoneError, zone
from scheduling.core.keys import is_name
from scheduling.core.pings import VARIABLE
from scheduling.core.schedule_files import Entry, nameless
from scheduling.core.targets import TARGET_KINDS, TARGETS
from scheduling.core.text import visible_text
from scheduling.handlers.params_model import ParamsInvalid, instance
from scheduling.handlers.secret_params import secret_names
from scheduling.handlers.targets import handler_of
from scheduling.models import Scheduler
from scheduling.models.plan import INSTANTS
from scheduling.operations.predecessors import name_of
from scheduling.operations.refused import Problem, Refused
from scheduling.operations.schedule_stated import Stated
from scheduling.operations.schedule_values import Name, ScheduleValues, unknown_words

NOT_IN_FILES = ("id", "after_id", *(f"{name}_id" for name in TARGETS))
FIELDS = tuple(name for name in ScheduleValues.model_fields if name not in NOT_IN_FILES)
KNOWN = (*FIELDS, "secrets")
"""The names of the values that an entry may have."""
PAUSE = ("status", "pause_reason")
EMPTY = (None, "")
"""A secret param with one of these values is not set."""


class ScheduleEntry(ScheduleValues):
    """The values of an entry, and the names of the params that the file leaves out because they are secret."""

    secrets: Annotated[list[Name], Field(max_length=200)] = Field(default_factory=list)


DEFAULTS: dict[str, Any] = {
    name: value for name, value in ScheduleValues.model_validate({}).model_dump().items() if name in FIELDS
}


def stated(row: Scheduler) -> Stated:
    """What a file says about the row. A row without a name gets the name `schedule-<id>`.

    If the code of the target is not known here, each param counts as secret.

    Raises:
        ValueError: the row has a value that no file can hold.
    """
    code, type_ = handler_of(row), row.target_type
    if not isinstance(row.params, dict):
        raise ValueError(_("its parameters are not a JSON object"))
    secret = set(row.params) if code is None else secret_names(code)
    hidden = tuple(sorted(name for name, value in row.params.items() if name in secret and value not in EMPTY))
    special: dict[str, Any] = dict.fromkeys(TARGETS) | {
        "name": row.name or nameless(row.pk),
        **{name: _instant(row, name) for name in INSTANTS},
        "params": {name: value for name, value in row.params.items() if name not in hidden},
        "calendar": None if row.calendar is None else row.calendar.name,
        "ping_url": row.ping_url if variable_of(row.ping_url, VARIABLE) else "",
        "user": None if row.user is None else row.user.get_username(),
        "group": None if row.group is None else row.group.name,
        "after": None if row.after is None else name_of(row.after),
    }
    if type_:
        special[type_] = getattr(row.target, TARGET_KINDS[type_].name_column)
    values = {name: special[name] if name in special else getattr(row, name) for name in FIELDS}
    if values["status"]:
        values["pause_reason"] = ""
    if not is_name(values["name"]):
        raise ValueError(_("its name has other signs than lower-case letters, digits and . _ : / -"))
    if problem := json_bounds.problem(_("its JSON"), values):
        raise ValueError(problem)
    try:
        instance(ScheduleValues, values)
    except ParamsInvalid as error:
        raise ValueError(str(error)) from None
    return Stated(values, hidden, has_ping=not row.ping_url or bool(values["ping_url"]))


def exported(row: Scheduler) -> Stated:
    """What an export writes about the row.

    Raises:
        ValueError: no file can hold the row, or its name in a file is that of another schedule.
    """
    name = nameless(row.pk)
    if row.name is None and Scheduler.objects.filter(name=name).exists():
        raise ValueError(_("another schedule has the name %(name)s") % {"name": name})
    return stated(row)


def entry_of(found: Stated) -> Entry:
    """The entry in a file: the name, and the values that differ from those of a new schedule."""
    values = {name: value for name, value in found.values.items() if name == "name" or value != DEFAULTS[name]}
    return values | ({"secrets": list(found.secrets)} if found.secrets else {})


def wanted(entry: Entry) -> Stated:
    """What an entry asks for.

    Raises:
        Refused: INVALID; the entry has values of a wrong type, or unknown ones.
    """
    problems = [
        Problem(visible_text(name, 80), "unknown", unknown_words(name, KNOWN)) for name in entry if name not in KNOWN
    ]
    if not problems:
        try:
            given = instance(ScheduleEntry, entry).model_dump(exclude_unset=True)
        except ParamsInvalid as error:
            problems = [
                Problem(visible_text(name, 80), "invalid", visible_text(said, 500))
                for name, said in error.errors.items()
            ]
    if not problems and given.get("pause_reason") and given.get("status") is not False:
        said = _("Only a paused schedule has a reason for its pause: it needs status: false.")
        problems = [Problem("pause_reason", "invalid", said)]
    if problems:
        raise Refused.invalid(problems)
    secrets = tuple(given.pop("secrets", ()))
    return Stated(DEFAULTS | given, secrets, "status" in given, "ping_url" in given)


def values_for(asked: Stated, row: Scheduler | None, allow_secrets: bool) -> dict[str, Any]:
    """The values for `operations.schedules`, with the secrets of the row, and without a pause that is not meant.

    Args:
        row: the schedule that is changed; None for a new one.

    Raises:
        Refused: INVALID; the entry holds a secret, and secrets are not allowed.
    """
    values, params, secret = dict(asked.values), dict(asked.values["params"]), secret_names(asked.handler())
    if not allow_secrets and (given := sorted(name for name in secret if params.get(name) not in EMPTY)):
        said = _("“%(name)s” is secret, and files go into a repository. Take it out of the file, or allow secrets.")
        raise Refused.invalid(Problem(f"params.{name}", "secret", said % {"name": name}) for name in given)
    _take_ping_url(values, asked, allow_secrets)
    if row is not None and not asked.has_pause:
        for name in PAUSE:
            del values[name]
    if row is not None and isinstance(row.params, dict) and target_of(row) == asked.target:
        for name in secret.union(asked.secrets) & row.params.keys() - params.keys():
            if row.params[name] not in EMPTY:
                params[name] = row.params[name]
    return values | {"params": params}


def _take_ping_url(values: dict[str, Any], asked: Stated, allow_secrets: bool) -> None:
    url = values["ping_url"]
    if url and not allow_secrets and not variable_of(url, VARIABLE):
        said = _("A ping URL is secret, and files go into a repository. Write ${CRON_PING_…}, or allow secrets.")
        raise Refused.value("ping_url", said, "secret")
    if not asked.has_ping:
        del values["ping_url"]


def missing_secrets(asked: Stated, values: Mapping[str, Any]) -> list[str]:
    """The secret params that the file names, or that the code needs, and that have no value.

    Args:
        values: those of `values_for`.
    """
    code = asked.handler()
    needed = set(asked.secrets)
    if code is not None:
        needed |= {name for name, info in code.params.model_fields.items() if info.is_required()} & secret_names(code)
    return sorted(name for name in needed if values["params"].get(name) in EMPTY)


def is_same(asked: Stated, found: Stated) -> bool:
    """Whether the row surely has what the entry asks for. False if that is not certain."""
    left = dict(asked.values) if asked.has_pause else {**asked.values, **{name: found.values[name] for name in PAUSE}}
    right = dict(found.values)
    if not asked.has_ping:
        left["ping_url"] = right["ping_url"]
    for values, told in ((left, asked), (right, found)):
        for name in INSTANTS:
            instant = told.instant(name)
            values[name] = instant.isoformat() if instant is not None else values[name]
    is_known = found.has_ping or not asked.has_ping
    return is_known and set(asked.secrets) <= set(found.secrets) and _text(left) == _text(right)


def _text(values: Mapping[str, Any]) -> str:
    # Text is compared, because Python treats `True` and `1` as equal.
    return json.dumps(values, sort_keys=True)


def target_of(row: Scheduler) -> dict[str, Any]:
    """The type and the name of the row's target; empty if it has none."""
    type_ = row.target_type
    return {type_: getattr(row.target, TARGET_KINDS[type_].name_column)} if type_ else {}


def _instant(row: Scheduler, name: str) -> str | None:
    found: datetime | None = getattr(row, name)
    if found is None:
        return None
    try:
        return found.astimezone(zone(row.zone_name)).isoformat()
    except (ZoneError, OverflowError):
        return found.astimezone(UTC).isoformat()
