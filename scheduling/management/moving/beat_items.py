"""Turns the tasks of Celery beat into schedules, or says why one cannot become a schedule."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _

from scheduling.core.run_sentences import NOT_SWITCHED_FROM_BEAT, OFF_IN_BEAT
from scheduling.core.targets import TARGET_KINDS
from scheduling.core.text import visible_text
from scheduling.handlers.targets import handler_named
from scheduling.management.moving.beat_tables import KINDS, BeatTables, Values
from scheduling.management.moving.beat_times import Listed, Times, clocked_times, crontab_times, interval_times, utc
from scheduling.operations.schedule_import import Item, Part, described, name_from
from scheduling.operations.times import format_minute

TARGET_TYPES = tuple(name for name, kind in TARGET_KINDS.items() if not kind.handler)
"""The types whose rows name their own handlers. A task becomes one of them."""
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Choices:
    """What the caller of the import has chosen.

    Args:
        handlers: by the name of a task: the type and the name of its handler.
        exact: list what differs from beat in an instant, instead of noting it.
        paused: make all schedules paused.
        seconds: whether the site allows intervals that count seconds.
    """

    handlers: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    exact: bool = False
    paused: bool = False
    seconds: bool = False


def beat_items(tables: BeatTables, choices: Choices, now: datetime) -> list[Item]:
    """An item for each task, in the order of the ids."""
    return [_item(tables, choices, now, pk, row) for pk, row in tables.tasks()]


def _item(tables: BeatTables, choices: Choices, now: datetime, pk: int, row: Values | str) -> Item:
    label = _("task %(id)s") % {"id": pk}
    if isinstance(row, str):
        return Item(label, "", why=_("Its row cannot be read: %(error)s") % {"error": row})
    item = Item(label, visible_text(f"{row['name']} ({row['task']})", 200))
    try:
        kind, schedule = _schedule(tables, row)
        _refuse_what_is_over(row, now)
        type_, handler = _handler(row, choices)
        times = _times(kind, schedule, row, choices, now)
        item.notes += times.notes
        item.only_here, item.only_there = times.differing.only_ours, times.differing.only_beat
        values = {
            type_: handler,
            "params": _params(row),
            "timezone": times.timezone,
            **_bounds(row, times),
            **_status(row, choices),
        }
        if times.date_time is not None:
            values["date_time"] = times.date_time.isoformat()
        item.notes += _not_carried_over(row)
        item.parts = _parts(pk, row, times, values, item.notes)
    except Listed as error:
        item.why, item.notes = str(error), []
    return item


def _schedule(tables: BeatTables, row: Values) -> tuple[str, Values]:
    kinds = [kind for kind in KINDS if row[f"{kind}_id"] is not None]
    if len(kinds) != 1:
        raise Listed(_("It has %(count)s schedules instead of one.") % {"count": len(kinds)})
    kind = kinds[0]
    if kind == "solar":
        raise Listed(_("It runs by the sun. A schedule has clock times: choose one, or several by month."))
    found = tables.schedule(kind, row[f"{kind}_id"])
    if found is None:
        raise Listed(_("Its %(kind)s schedule is missing.") % {"kind": kind})
    if isinstance(found, str):
        raise Listed(_("Its %(kind)s schedule cannot be read: %(error)s") % {"kind": kind, "error": found})
    return kind, found


def _refuse_what_is_over(row: Values, now: datetime) -> None:
    if row["expires"] is not None and utc(row["expires"]) <= now:
        raise Listed(_("It has expired: %(time)s.") % {"time": format_minute(utc(row["expires"]))})
    if row["one_off"] and _number(row, "total_run_count"):
        raise Listed(_("It was to run once, and has run."))


def _handler(row: Values, choices: Choices) -> tuple[str, str]:
    task = row["task"]
    if not isinstance(task, str) or not task:
        raise Listed(_("It names no task."))
    if task in choices.handlers:
        return choices.handlers[task]
    for type_ in TARGET_TYPES:
        if handler_named(type_, task) is not None:
            return type_, task
    said = _("No handler has the name “%(task)s”. Register one, or name it: --map %(task)s=HANDLER.")
    raise Listed(said % {"task": visible_text(task, 100)})


def _times(kind: str, schedule: Values, row: Values, choices: Choices, now: datetime) -> Times:
    if kind == "crontab":
        return crontab_times(schedule, row, now, choices.exact)
    if kind == "interval":
        return interval_times(schedule, row, choices.seconds, choices.exact)
    return clocked_times(schedule, row, now)


def _params(row: Values) -> dict[str, Any]:
    args, params = _json(row, "args", list), _json(row, "kwargs", dict)
    if args:
        raise Listed(_("It has arguments without names. Give them names in kwargs: parameters have names."))
    return dict(params)


def _json(row: Values, name: str, type_: type) -> Any:
    try:
        found = json.loads(row[name] or "null")
    except (ValueError, TypeError, RecursionError):
        raise Listed(_("Its %(name)s are not JSON.") % {"name": name}) from None
    if found is None:
        return type_()
    if not isinstance(found, type_):
        wanted = "[…]" if type_ is list else "{…}"
        raise Listed(_("Its %(name)s are JSON, but not %(wanted)s.") % {"name": name, "wanted": wanted})
    return found


def _bounds(row: Values, times: Times) -> dict[str, Any]:
    """From when, until when, how often, and how late it may start."""
    found: dict[str, Any] = {}
    if (seconds := _number(row, "expire_seconds")) is not None:
        found["start_within_seconds"] = seconds
    if times.date_time is not None:
        return found
    if row["one_off"]:
        if len(times.schedules) > 1:
            raise Listed(_("It runs once, but its times need several schedules."))
        found["max_runs"] = 1
    if row["expires"] is not None:
        found["active_until"] = _before(utc(row["expires"]) - times.earlier).isoformat()
    if row["start_time"] is not None:
        found["active_from"] = (utc(row["start_time"]) - times.earlier).isoformat()
    return found


def _before(end: datetime) -> datetime:
    """The last full second before it. Beat stops at this instant, and our end still counts."""
    return end.replace(microsecond=0) - (timedelta(0) if end.microsecond else _SECOND)


def _status(row: Values, choices: Choices) -> dict[str, Any]:
    if row["enabled"] not in (True, False):
        raise Listed(_("Its column enabled has neither true nor false."))
    if not row["enabled"]:
        return {"status": False, "pause_reason": OFF_IN_BEAT.format()}
    if choices.paused:
        return {"status": False, "pause_reason": NOT_SWITCHED_FROM_BEAT.format()}
    return {}


def _number(row: Values, name: str) -> int | None:
    value = row[name]
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Listed(_("Its column %(name)s has no number: %(value)r.") % {"name": name, "value": str(value)[:40]})
    return value


def _not_carried_over(row: Values) -> list[str]:
    """What the schedule does not have. Whether it matters, a person must say."""
    notes = []
    for name in ("queue", "exchange", "routing_key", "priority"):
        if row[name] not in (None, ""):
            notes.append(_("Its %(name)s is not carried over: %(value)s.") % {"name": name, "value": row[name]})
    if _json(row, "headers", dict):
        notes.append(_("Its headers are not carried over."))
    return notes


def _parts(pk: int, row: Values, times: Times, values: Mapping[str, Any], notes: list[str]) -> list[Part]:
    if not isinstance(row["name"], str) or not row["name"]:
        raise Listed(_("It has no name."))
    name = name_from(row["name"], str(pk))
    own = row["description"] if isinstance(row["description"], str) else ""
    text = described(_("%(name)s (Celery beat, task %(id)s).") % {"name": row["name"], "id": pk}, [own, *notes])
    schedules = times.schedules or [""]
    parts = []
    for number, schedule in enumerate(schedules, 1):
        part = {**values, "name": name, "description": text, "schedule": schedule}
        if number > 1:
            part["name"] = f"{name[:96]}-p{number}"
        parts.append(Part(part))
    return parts
