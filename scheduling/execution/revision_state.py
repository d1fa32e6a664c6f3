"""Reads the state of a schedule for its revisions. Secrets are replaced by digests."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from django.utils.crypto import salted_hmac

from scheduling.conf import get_conf
from scheduling.core.chat_services import variable_of
from scheduling.core.pings import VARIABLE
from scheduling.core.revisions import HIDDEN, NEW, OLD, PARAMS, Edits, Snapshot, text_of
from scheduling.core.targets import TARGET_KINDS
from scheduling.handlers.registry import Handler
from scheduling.handlers.secret_params import secret_names
from scheduling.handlers.targets import handler_named, target_names
from scheduling.models.schedule_revision import STATE_COLUMNS

LONGEST_VALUE = 20_000
"""A parameter with a longer JSON text is hidden, as a secret is."""
MOST_PARAMS = 1_000
"""If there are more parameters, only one digest of all of them is kept."""

READ_COLUMNS = (
    "pk", *STATE_COLUMNS, "revision", "next_run_at", "next_nominal_at", "planned_status", "planned_schedule",
    "paused_at",
)  # fmt: skip
"""The columns of a schedule that a revision needs."""

Names = Mapping[tuple[str, int | None], str]


@dataclass(frozen=True)
class Stored:
    """The state of a schedule as the database has it.

    Args:
        revision: the number of the newest revision, as the schedule's row has it.
        undecided: the nominal instant of the first occurrence that is not on record.
        spent: whether the date of a one-time schedule has been claimed, which has paused it.
        was_planned: whether a save or a producer has planned the row before.
    """

    pk: int
    name: str
    zone: str
    snapshot: Snapshot
    revision: int | None
    undecided: datetime | None
    spent: bool
    was_planned: bool

    def since(self, former: Snapshot | None) -> Snapshot:
        """The snapshot to compare with the former one.

        The claim of its date pauses a one-time schedule. This is no change: the date says so.
        """
        state = self.snapshot.state
        if self.spent and former is not None and former.state.get("date_time") == state["date_time"]:
            return Snapshot({**state, "status": former.state.get("status")}, self.snapshot.digests)
        return self.snapshot

    def undoing(self, edits: Edits, newest: Snapshot | None) -> Edits:
        """The edits of an undo, with that of the status if they take a claimed date away.

        The claim has paused the schedule, and no revision says so. Without the date, its status is the one that the
        newest revision has, unless the edits name another one.
        """
        if not self.spent or "date_time" not in edits:
            return edits
        found, present = {**edits}, self.snapshot.state["status"]
        wanted = found.pop("status", {}).get(NEW, self.since(newest).state["status"])
        return found if wanted == present else {**found, "status": {OLD: present, NEW: wanted}}


def stored_of(values: Mapping[str, Any], names: Names | None = None) -> Stored:
    """The state of a schedule.

    Args:
        values: the columns `READ_COLUMNS` by name.
        names: the names of the targets, if the caller has already read them.
    """
    pk, target = values["pk"], target_of(values)
    name = (target_names([target]) if names is None else names).get(target, "")
    kind = TARGET_KINDS.get(target[0])
    handler = None if kind is None else handler_named(target[0], kind.handler or name)
    state: dict[str, Any] = {
        column: json_value(values[column]) for column in STATE_COLUMNS if column not in ("params", "ping_url")
    }
    digests: dict[str, str] = {}
    _add_params(pk, values["params"], handler, state, digests)
    _add_ping_url(pk, values["ping_url"], state, digests)
    spent = values["date_time"] is not None and not values["status"] and not values["planned_status"]
    undecided = values["next_nominal_at"] or values["next_run_at"]
    return Stored(
        pk=pk,
        name=str(values["name"] or values["description"] or f"{name} {values['schedule'] or values['date_time']}"),
        zone=str(values["timezone"] or get_conf().timezone),
        snapshot=Snapshot(state, digests),
        revision=values["revision"],
        undecided=undecided if isinstance(undecided, datetime) else None,
        spent=spent and values["paused_at"] is None,
        was_planned=values["planned_status"] is not None or values["planned_schedule"] is not None,
    )


def target_of(values: Mapping[str, Any]) -> tuple[str, int | None]:
    """The type and the id of the target; an empty type if there is none."""
    found = ((type_, values[f"{type_}_id"]) for type_ in TARGET_KINDS if values[f"{type_}_id"] is not None)
    return next(found, ("", None))


def digest_for(pk: int) -> Any:
    """The function that makes the digests of a schedule's values. Equal secrets of two schedules have two digests."""
    return lambda key, value: digest(pk, key, value)


def digest(pk: int, key: str, value: Any) -> str:
    """The digest of a value, signed with the site's secret key. The beginning names the key."""
    mark = salted_hmac("scheduling.revision.key", "", algorithm="sha256").hexdigest()[:6]
    text = f"{pk}\n{key}\n{text_of(value)}"
    return f"{mark}:{salted_hmac('scheduling.revision', text, algorithm='sha256').hexdigest()[:32]}"


def json_value(value: Any) -> Any:
    """The value as JSON has it. A value of a type that the column cannot have becomes a text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case dict() | list():
            return value
        case _:
            return str(value)


def _add_params(pk: int, params: Any, handler: Handler | None, state: dict[str, Any], digests: dict[str, str]) -> None:
    """Without the code, nothing tells which parameters are secret. Each of them is hidden then."""
    if not isinstance(params, dict) or len(params) > MOST_PARAMS:
        state["params"] = HIDDEN
        digests["params"] = digest(pk, "params", params)
        return
    secret = secret_names(handler)
    for name, value in params.items():
        key = f"{PARAMS}{name}"
        is_empty = value in (None, "")
        hidden = not is_empty and (handler is None or name in secret)
        if hidden or len(text_of(value)) > LONGEST_VALUE:
            state[key], digests[key] = HIDDEN, digest(pk, key, value)
        else:
            state[key] = value


def _add_ping_url(pk: int, url: Any, state: dict[str, Any], digests: dict[str, str]) -> None:
    """A ping URL is a secret, unless it names an environment variable."""
    if not url or (isinstance(url, str) and variable_of(url, VARIABLE)):
        state["ping_url"] = str(url or "")
    else:
        state["ping_url"], digests["ping_url"] = HIDDEN, digest(pk, "ping_url", str(url))
