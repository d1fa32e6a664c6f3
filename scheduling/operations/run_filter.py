"""Which executions a list has. The conditions are those of the list in the admin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Annotated

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field, StrictStr

from scheduling.core.json_bounds import is_storable
from scheduling.core.lifecycle import State, Trigger
from scheduling.core.search_terms import Search, read_search
from scheduling.core.text import is_number, visible_text
from scheduling.models import SchedulerExecution
from scheduling.models.first_keys import oldest_of_newest
from scheduling.models.newest import newest_keys
from scheduling.models.visibility import Visibility
from scheduling.operations import executions
from scheduling.operations.actor import Actor
from scheduling.operations.json_types import Instant
from scheduling.operations.names import schedules_named, targets_named
from scheduling.operations.param_search import path_of, with_param
from scheduling.operations.refused import Problem, Refused
from scheduling.operations.search_conditions import (
    KEY_PREFIXES,
    error_class_is,
    errors_with,
    is_fingerprint,
    with_fingerprint,
    with_key,
)
from scheduling.operations.shaping import page_keys
from scheduling.operations.spans import span_of, within
from scheduling.operations.target_type import TargetType

Text = Annotated[StrictStr, Field(max_length=200)]

LIMIT = 100_000
"""Conditions that no index answers read only the newest executions, at most this many."""


class RunFilter(BaseModel):
    """Conditions on executions. An execution meets all of them."""

    model_config = ConfigDict(extra="forbid", title="ExecutionFilter")

    state: State | None = None
    type: TargetType | None = None
    trigger: Trigger | None = None
    scheduler: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = Field(None, description="The id of a schedule.")
    target_name: Text | None = None
    fingerprint: Annotated[StrictStr, Field(max_length=40)] | None = Field(None, description="An error group.")
    error_class: Text | None = None
    since: Instant | None = Field(None, description="It fell due at this instant or later.")
    until: Instant | None = Field(None, description="It fell due before this instant.")
    q: Text = Field(
        "", description="Words of the error, the target, the schedule or the id; or error:, target:, key:, param:, id: "
        "and schedule: with a value."
    )  # fmt: skip


@dataclass(frozen=True)
class FilteredRuns:
    """The executions that meet the conditions.

    Args:
        rows: without an order.
        is_cut: whether only the newest `LIMIT` executions were asked, because no index answers the conditions.
    """

    rows: QuerySet[SchedulerExecution]
    is_cut: bool = False


def filtered_runs(actor: Actor, wanted: RunFilter) -> FilteredRuns:
    """The executions that the actor sees and that meet the conditions.

    Raises:
        Refused: FORBIDDEN; INVALID if a text cannot be stored, or if the search cannot be read.
    """
    rows, search = executions.seen(actor), read_search(wanted.q.strip())
    columns = ("state", "type", "trigger", "scheduler", "target_name", "fingerprint", "error_class")
    given = {name: value for name in columns if (value := getattr(wanted, name)) is not None}
    problems = [*_unstorable({**given, "q": wanted.q}), *_problems(search)]
    if problems:
        raise Refused.invalid(problems)
    rows = rows.filter(**{name: value for name, value in given.items() if name != "error_class"})
    if wanted.error_class is not None:
        rows = rows.filter(error_class_is(wanted.error_class))
    if wanted.since is not None or wanted.until is not None:
        rows = within(rows, span_of(wanted.since, wanted.until))
    narrow, wide = _conditions(search, actor.visible)
    rows = rows.filter(*narrow)
    slow = wide or given.keys() & {"target_name", "fingerprint", "error_class", "type", "trigger"}
    bounded = narrow or wanted.scheduler is not None or wanted.state is State.FAILED
    oldest = oldest_of_newest(LIMIT) if slow and not bounded else None
    if wide:
        rows = rows.filter(reduce(and_, wide))
    return FilteredRuns(rows) if oldest is None else FilteredRuns(rows.filter(pk__gte=oldest), is_cut=True)


def run_keys(actor: Actor, wanted: RunFilter, after: int | None, size: int) -> tuple[list[int], int | None, bool]:
    """The keys of one page, the newest first; the key to go on after, None on the last page; and `is_cut`.

    Args:
        after: the last key of the page before; None for the first page.

    Raises:
        Refused: FORBIDDEN or INVALID.
    """
    found, visible = filtered_runs(actor, wanted), actor.visible
    if not visible.is_limited:
        return *page_keys(found.rows, after, size, descending=True), found.is_cut
    # The database would read the newest executions of all groups until it has found enough.
    rows = found.rows if after is None else found.rows.filter(pk__lt=after)
    keys = newest_keys(rows, visible, 0, size + 1, wanted.state is None)
    return keys[:size], keys[size - 1] if len(keys) > size else None, found.is_cut


def _unstorable(given: Mapping[str, object]) -> Iterator[Problem]:
    for name, value in given.items():
        if isinstance(value, str) and not is_storable(value):
            yield Problem(name, "characters", _("This text cannot be stored, so nothing matches it."))


WIDE: Mapping[str, Callable[[str], Q]] = {
    "error": errors_with,
    "target": lambda text: targets_named(text).found,
    "key": with_key,
    "param": with_param,
}
NARROW = ("id", "schedule")


def _problems(search: Search) -> Iterator[Problem]:
    """What is wrong with the qualifiers."""
    for part in search.qualifiers:
        text = {"part": visible_text(part.written, 80)}
        if part.name == "id" and not is_number(part.value):
            yield Problem("q", "id", _("“%(part)s”: an id is a whole number.") % text)
        elif part.name == "param" and path_of(part.value) is None:
            said = _("“%(part)s”: write a name and a value, such as param:region=eu.")
            yield Problem("q", "param", said % text)
        elif part.name not in NARROW and part.name not in WIDE:
            known = {"known": ", ".join(f"{name}:" for name in (*NARROW, *WIDE))}
            said = _("“%(part)s”: no filter has this name. There are %(known)s. To search for the text, quote it.")
            yield Problem("q", "qualifier", said % (text | known))


def _conditions(search: Search, visible: Visibility) -> tuple[list[Q], list[Q]]:
    """The conditions that an index answers, and those that read the text of each row."""
    narrow: list[Q] = []
    # MariaDB finds nothing if the same condition on JSON stands twice in one statement.
    parts = dict.fromkeys((part.name, part.value) for part in search.qualifiers)
    for name, value in parts:
        if name == "id":
            narrow.append(Q(pk=int(value)))
        elif name == "schedule":
            narrow.append(_of_schedules(value, visible))
    wide = [WIDE[name](value) for name, value in parts if name in WIDE]
    if is_number(search.words) and not wide:
        narrow.append(Q(pk=int(search.words)))
    elif search.words:
        wide.append(_words(search.words, visible))
    return narrow, wide


def _words(text: str, visible: Visibility) -> Q:
    if is_fingerprint(text):
        return with_fingerprint(text)
    if text.startswith(KEY_PREFIXES):
        return with_key(text)
    return errors_with(text) | targets_named(text).found | _of_schedules(text, visible)


def _of_schedules(text: str, visible: Visibility) -> Q:
    if is_number(text):
        return Q(scheduler_id=int(text))
    return Q(scheduler_id__in=schedules_named(text, visible))
