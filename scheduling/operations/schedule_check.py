"""Writes given values into the row of a schedule, and checks them as the form of the admin does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from scheduling.core import json_bounds
from scheduling.core.cron import ZoneError, resolve_wall
from scheduling.core.keys import is_name
from scheduling.core.targets import TARGET_KINDS, TARGETS
from scheduling.core.text import visible_text
from scheduling.handlers.permission import refused_targets
from scheduling.handlers.retry_policy import inherited_policy
from scheduling.handlers.secret_params import MASK, masked
from scheduling.handlers.targets import handler_of, target_model
from scheduling.handlers.validation import mark_checked, params_error, service_error
from scheduling.models import Scheduler
from scheduling.models.calendar import LONG
from scheduling.models.own_retry_policy import RETRY_COLUMNS
from scheduling.models.plan import INSTANTS
from scheduling.models.schedule_names import DEFAULT_MARK
from scheduling.models.visibility import visibility_by_groups
from scheduling.operations import predecessors
from scheduling.operations.actor import Actor
from scheduling.operations.params_diff import hidden_words, masked_names, unmask
from scheduling.operations.pause_reason import pause_reason
from scheduling.operations.refused import Problem, Refused, problems_of
from scheduling.pings import address as ping_address

SPECIAL = frozenset(
    {"name", *INSTANTS, "calendar", "params", "ping_url", "user", "group"}
    | {*TARGETS, *(f"{name}_id" for name in TARGETS)}
    | {*predecessors.KEYS}
)
"""Values that are more than the text or number of a column."""

KEYS = tuple((type_, key) for type_ in TARGETS for key in (type_, f"{type_}_id"))
"""A target is given by its name or by its id."""


def fill(actor: Actor, row: Scheduler, values: Mapping[str, Any]) -> None:
    """Write the values into the row, which is not saved, and check the whole row.

    Args:
        values: see `ScheduleValues`. The names of columns that are left out keep their values.

    Raises:
        Refused: INVALID or SCHEDULE_RETRY_POLICY_INVALID, with a problem for each wrong value.
    """
    former, code = (row.params if isinstance(row.params, dict) else {}), handler_of(row)
    problems = list(_unstorable(values))
    if not problems:
        for name in values.keys() - SPECIAL:
            setattr(row, name, pause_reason(values[name]) if name == "pause_reason" else values[name])
        problems += [*_name(row, values), *_target(actor, row, values), *_owners(actor, row, values)]
        problems += [*_instants(row, values), *_ping_url(row, values), *_calendar(actor, row, values)]
        problems += predecessors.take(actor, row, values)
    if problems:
        raise Refused.invalid(problems)
    is_same = handler_of(row) is code  # secrets are not copied to another target
    if "params" in values:
        row.params = unmask(code, former if is_same else {}, values["params"])
    elif not is_same and masked(code, former) != former:
        raise Refused.value(
            "params", _("Secrets are not copied to another target: write the parameters again."), "secret"
        )
    problems = list(_problems(row))
    wrong = {problem.field for problem in problems}
    if not wrong & {"params", *TARGETS}:
        problems += _params_problems(row)
    if problems:
        raise Refused.invalid(dict.fromkeys(problems))  # the model and the code may find the same
    mark_checked(row)


def _unstorable(values: Mapping[str, Any]) -> Iterator[Problem]:
    for name, value in values.items():
        if problem := json_bounds.problem(_("The value"), value):
            yield Problem(name, "characters", problem)


def _name(row: Scheduler, values: Mapping[str, Any]) -> Iterator[Problem]:
    if "name" not in values or (name := values["name"] or None) == row.name:
        return
    if (row.name or "").startswith(DEFAULT_MARK):
        yield Problem("name", "name", _("The code of its worker has made this schedule, so its name cannot change."))
    elif row.source_file and row.name is not None:  # the next apply would make the schedule a second time
        said = _("The schedule file “%(file)s” finds this schedule by its name. Rename it there.")
        yield Problem("name", "owner", said % {"file": visible_text(row.source_file, 200)})
    elif name is not None and not is_name(name):
        said = _("A name has 1 to 100 lower-case letters, digits and the signs . _ : / -")
        yield Problem("name", "name", said)
    elif name is not None and Scheduler.objects.filter(name=name).exclude(pk=row.pk).exists():
        yield Problem("name", "unique", _("Another schedule has this name."))
    else:
        row.name = name


def _target(actor: Actor, row: Scheduler, values: Mapping[str, Any]) -> Iterator[Problem]:
    """Read the target. A new target replaces the former one, also one of another type."""
    asked = {(type_, key): values[key] for type_, key in KEYS if values.get(key)}
    if not asked:
        for type_ in {type_ for type_, key in KEYS if key in values}:
            setattr(row, type_, None)
        return
    if len({type_ for type_, _key in asked}) > 1:
        yield Problem(next(iter(asked))[1], "target", _("Give one target."))
        return
    type_, rows = next(iter(asked))[0], {}
    for (_type, key), value in asked.items():
        found = _targets(actor, type_, key, value)
        if len(found) != 1:
            yield _no_target(type_, key, bool(found))
            return
        rows[found[0].pk] = found[0]
    if len(rows) > 1:
        yield Problem(type_, "target", _("The name and the id are those of two rows."))
        return
    for other in TARGETS:
        setattr(row, other, next(iter(rows.values())) if other == type_ else None)


def _no_target(type_: str, key: str, several: bool) -> Problem:
    said = _("There is no such %(type)s, or its code asks for a permission that you lack.")
    if several:
        said = _("Several rows of this type have this name. Give its id.")
    return Problem(key, "target", said % {"type": type_})


def _targets(actor: Actor, type_: str, key: str, value: Any) -> list[Model]:
    """The targets that the actor may choose and that have this name or id. Two of them stand for many."""
    rows = target_model(type_)._default_manager.all()
    refused = refused_targets(actor, type_)
    if refused is not None:
        rows = rows.exclude(refused) if refused else rows.none()
    if key.endswith("_id"):
        return list(rows.filter(pk=value))
    column = TARGET_KINDS[type_].name_column
    found = list(rows.filter(**{column: value})[:2])
    return [row for row in found if getattr(row, column) == value] or found  # MariaDB ignores case


def _owners(actor: Actor, row: Scheduler, values: Mapping[str, Any]) -> Iterator[Problem]:
    if "user" in values:
        users: Any = get_user_model()
        name = values["user"]
        user = users._default_manager.filter(**{users.USERNAME_FIELD: name}).first() if name else None
        if name and user is None:
            yield Problem("user", "user", _("There is no user with this name."))
        row.user = user
    if "group" in values and values["group"] != (row.group.name if row.group is not None else None):
        own, name = visibility_by_groups(actor).groups, values["group"]
        groups = Group.objects.all() if own is None else Group.objects.filter(pk__in=own)
        group = groups.filter(name=name).first() if name else None
        if name and group is None:
            yield Problem("group", "group", _("You may choose only a group that you are a member of."))
        row.group = group


def _calendar(actor: Actor, row: Scheduler, values: Mapping[str, Any]) -> Iterator[Problem]:
    """Read the name of the calendar. One that the actor does not see cannot be chosen."""
    if "calendar" not in values:
        return
    name = values["calendar"] or None
    if name is None or row.calendar is None or row.calendar.name != name:
        rows = actor.visible.calendars().filter(name=name).defer(*LONG)
        row.calendar = found = rows.first() if name else None
        if name and (found is None or found.name != name):  # MariaDB ignores case
            yield Problem("calendar", "calendar", _("There is no calendar with this name."))


def _ping_url(row: Scheduler, values: Mapping[str, Any]) -> Iterator[Problem]:
    """Read the ping URL. A mask that is sent back keeps the stored one."""
    url = str(values.get("ping_url", MASK)).strip()
    if url == MASK:
        if "ping_url" in values and not row.ping_url:
            yield Problem("ping_url", "secret", hidden_words())
        return
    if url and url != row.ping_url and (said := ping_address.problem(url)):
        yield Problem("ping_url", "ping_url", said)
    else:
        row.ping_url = url


def _instants(row: Scheduler, values: Mapping[str, Any]) -> Iterator[Problem]:
    for name in INSTANTS:
        if name not in values:
            continue
        try:
            setattr(row, name, _instant(values[name], row.zone_name) if values[name] else None)
        except (ValueError, OverflowError) as error:
            yield Problem(name, name, visible_text(error, 300))


def _instant(text: str, zone_name: str) -> datetime:
    found = parse_datetime(text)
    if found is None:
        raise ValueError(_("This is no date and time such as 2026-03-29T02:30 or 2026-03-29T02:30:00+02:00."))
    return (found if found.tzinfo is not None else _in_zone(found, zone_name)).astimezone(UTC)


def _in_zone(local: datetime, zone_name: str) -> datetime:
    try:
        return resolve_wall(local, zone_name)
    except ZoneError as error:
        raise ValueError(str(error)) from None


def _problems(row: Scheduler) -> Iterator[Problem]:
    """What the columns themselves say."""
    try:
        row.full_clean(exclude={"name"}, validate_unique=False, validate_constraints=False)
    except ValidationError as error:
        yield from problems_of(error)


def _params_problems(row: Scheduler) -> Iterator[Problem]:
    """What the target's code says about the row."""
    code = handler_of(row)
    if masked_names(row.params):
        yield Problem("params", "secret", hidden_words())
    elif found := params_error(row):
        yield Problem("params", "params", visible_text(found, 1_000))
    if problem := service_error(row):
        yield Problem("stay_alive", "stay_alive", problem)
    retry = row.retry_errors(inherited_policy(code))
    for name in RETRY_COLUMNS:
        if name in retry:
            yield from problems_of(ValidationError({name: retry[name]}))
