"""The heat map: one cell for each hour of seven days. The colour of a cell shows the worst state of its executions.

The executions are counted for each request. Stored counts would have to be updated whenever an attempt is settled, and
that would make every settle slower. Republishing an old failure would even change the counts of a past hour.

First, `first_keys` finds the first primary key of every hour. Then the executions of every hour are counted for each
state. Each count reads one short range of the index (state, -id), and stops above `COUNT_LIMIT`. So the cost depends on
the number of hours (7 * 24 = 168), not on the number of rows. The heat map is fast even with a million rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from itertools import pairwise
from typing import Any, NamedTuple

from django.db import connections, router
from django.utils.formats import date_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.common.viewer import Viewer
from scheduling.admin.ui import svg
from scheduling.core.lifecycle import State
from scheduling.models import SchedulerExecution
from scheduling.models.first_keys import first_keys
from scheduling.models.labels import STATES
from scheduling.models.newest import group_comes_first
from scheduling.models.visibility import Visibility

DAYS = 7
COUNT_LIMIT = 100
"""The maximum count for one state in one hour. If there are more executions, the label says `100+`."""

KEPT_SECONDS = 60
"""How long the counts are kept. The page asks for the heat map as often."""
KEPT = 32
"""The counts of at most this many time zones and sets of groups are kept."""
LARGEST_KEY = 2**63 - 1
MOST_LOOKED_UP = 40
"""With more groups, it is not looked up which of them have recent executions."""
COLUMNS_PER_STATEMENT = 1_200
"""PostgreSQL returns at most 1,664 columns, SQLite 2,000."""

TONES = {
    State.FAILED: "bad",
    State.RETRYING: "warn",
    State.SKIPPED: "warn",
    State.DISCARDED: "off",
    State.CANCELLED: "off",
    State.SUCCEEDED: "good",
}
"""The colour of each state, the worst state first. The heat map leaves out claimed, queued and running executions."""

SIDE, GAP, LEFT, TOP = 20, 3, 54, 18


@dataclass
class Cell:
    """One hour of the heat map. The hour's executions have primary keys from `first` to `end - 1`."""

    start: datetime
    first: int = 0
    end: int = 0
    counts: dict[State, int] = field(default_factory=dict)

    @property
    def worst(self) -> State | None:
        """The worst state of the hour's executions; None if the hour has no executions."""
        return next((state for state in TONES if self.counts.get(state)), None)


def heatmap(viewer: Viewer) -> dict[str, Any]:
    """The picture, and the time zone of its hours."""
    cells = _cells(viewer)
    return {"picture": _draw(cells, viewer), "zone": viewer.zone, "any": any(cell.counts for cell in cells)}


Kept = tuple[tzinfo, Visibility]

_kept: dict[Kept, tuple[int, list[Cell]]] = {}
"""For each zone and each set of groups, the minute of the last count and the counted hours. The viewers of this process
who see the same groups share them."""


def is_counted(viewer: Viewer) -> bool:
    """Whether the heat map is ready. If not, `heatmap` makes a thousand counts."""
    return _kept.get((viewer.zone, viewer.visible), (None,))[0] == _minute(viewer)


def forget() -> None:
    """Count again for the next request."""
    _kept.clear()


def _minute(viewer: Viewer) -> int:
    return int(viewer.now.timestamp()) // KEPT_SECONDS


def _cells(viewer: Viewer) -> list[Cell]:
    """The hours of the last days."""
    key = viewer.zone, viewer.visible
    minute, found = _kept.get(key, (None, []))
    if minute != _minute(viewer):
        found = _counted(viewer.zone, viewer.now, viewer.visible)
        if len(_kept) >= KEPT:
            _kept.clear()
        _kept[key] = _minute(viewer), found
    return found


def _counted(zone: tzinfo, now: datetime, visible: Visibility) -> list[Cell]:
    today = now.astimezone(zone).date()
    starts = [
        datetime(day.year, day.month, day.day, hour, tzinfo=zone)
        for day in (today - timedelta(days=back) for back in range(DAYS - 1, -1, -1))
        for hour in range(24)
    ]
    # On the day of a clock change, a skipped hour has an empty cell, and a repeated hour has one cell for both hours.
    keys = first_keys([*starts, starts[-1] + timedelta(hours=1)])
    cells = [Cell(start, *pair) for start, pair in zip(starts, pairwise(keys), strict=True)]
    filled = [cell for cell in cells if cell.first < cell.end]
    for part in _parts(visible, filled[0].first if filled else 0):
        _count(filled, part)
    return cells


class _Part(NamedTuple):
    """The executions of a state that a viewer sees, or some of them.

    Args:
        condition: the condition on their group in SQL, empty for all executions.
        end: no later execution is among them.
    """

    state: State
    condition: str
    end: int


def _parts(visible: Visibility, first: int) -> Iterator[list[_Part]]:
    """What is counted in one pass. For a viewer who sees some groups, parts without recent executions are left out.

    Args:
        first: older executions are not counted.
    """
    if not visible.is_limited:
        yield [_Part(state, "", LARGEST_KEY) for state in TONES]
        return
    own = ", ".join(f"{key:d}" for key in visible.own)
    one_by_one = ["IS NULL", *(f"= {key:d}" for key in visible.own)]
    newest = _newest(one_by_one, first) if len(one_by_one) <= MOST_LOOKED_UP else {}
    for condition, conditions in (("IS NULL", one_by_one[:1]), (f"IN ({own})", one_by_one[1:])):
        ends = {
            state: max((newest.get((part, state), LARGEST_KEY) for part in conditions), default=0) for state in TONES
        }
        yield [_Part(state, f" AND {_group()} {condition}", end) for state, end in ends.items() if end]


def _group() -> str:
    return str(connections[router.db_for_read(SchedulerExecution)].ops.quote_name("group_id"))


def _newest(conditions: Sequence[str], first: int) -> dict[tuple[str, State], int]:
    """The number after the newest key, for each condition on the group and each state; 0 if there is no recent row."""
    connection = connections[router.db_for_read(SchedulerExecution)]
    name, group = connection.ops.quote_name, _group()
    wanted = [(condition, state) for condition in conditions for state in TONES]
    order = f"{group}, {name('id')} DESC" if group_comes_first(connection.alias) else f"{name('id')} DESC"
    columns = [
        f"(SELECT {name('id')} FROM {name(SchedulerExecution._meta.db_table)} "  # noqa: S608 - our own names and numbers
        f"WHERE {group} {condition} AND {name('state')} = '{state.value}' AND {name('id')} >= {first:d} "
        f"ORDER BY {order} LIMIT 1)"
        for condition, state in wanted
    ]
    with connection.cursor() as cursor:
        cursor.execute("SELECT " + ", ".join(columns))
        row = cursor.fetchone()
    return {key: found + 1 if found is not None else 0 for key, found in zip(wanted, row, strict=True)}


def _count(cells: list[Cell], parts: list[_Part]) -> None:
    """Count the executions with one SQL statement. It has one subquery for each state of each hour that has rows.

    The SQL is written by hand, because the ORM is too slow for a thousand subqueries. The ORM would need a hundred
    times longer to build the statement than the database needs to run it. The numbers and states are written into the
    statement, because some databases accept fewer parameters.
    """
    wanted = [(cell, part) for cell in cells for part in parts if cell.first < part.end]
    if not wanted:
        return
    connection = connections[router.db_for_read(SchedulerExecution)]
    name, meta = connection.ops.quote_name, SchedulerExecution._meta
    table, state, key = name(meta.db_table), name("state"), name("id")
    columns = [
        f"(SELECT COUNT(*) FROM (SELECT 1 AS one FROM {table} "  # noqa: S608 - our own names, states and whole numbers
        f"WHERE {state} = '{part.state.value}' AND {key} >= {cell.first:d} AND {key} < {cell.end:d}{part.condition} "
        f"LIMIT {COUNT_LIMIT + 1}) AS counted)"
        for cell, part in wanted
    ]
    for start in range(0, len(columns), COLUMNS_PER_STATEMENT):
        with connection.cursor() as cursor:
            cursor.execute("SELECT " + ", ".join(columns[start : start + COLUMNS_PER_STATEMENT]))
            row = cursor.fetchone()
        for (cell, part), number in zip(wanted[start : start + COLUMNS_PER_STATEMENT], row, strict=True):
            if number:
                cell.counts[part.state] = cell.counts.get(part.state, 0) + number


def _draw(cells: list[Cell], viewer: Viewer) -> SafeString:
    step = SIDE + GAP
    shapes = [svg.text(LEFT + hour * step, TOP - 6, f"{hour:02}") for hour in range(0, 24, 3)]
    for place, cell in enumerate(cells):
        day, hour = divmod(place, 24)
        x, y = LEFT + hour * step, TOP + day * step
        if hour == 0:
            shapes.append(svg.text(LEFT - 8, y + SIDE - 5, date_format(cell.start, "D j"), anchor="end"))
        if cell.start <= viewer.now:
            shapes.append(_cell(cell, x, y, viewer))
    label = _("Executions of the last %(days)d days by hour, coloured by the worst result") % {"days": DAYS}
    return svg.picture(LEFT + 24 * step, TOP + DAYS * step, label, shapes, css="dash-heat", linked=True)


def _cell(cell: Cell, x: int, y: int, viewer: Viewer) -> SafeString:
    hour = f"{date_format(cell.start, 'D j')}, {cell.start:%H:%M}"
    worst = cell.worst
    if worst is None:
        return svg.rect(x, y, SIDE, SIDE, "dash-cell dash-none", _("%(hour)s: nothing") % {"hour": hour}, rx=3)
    counts = {state: number if number <= COUNT_LIMIT else f"{COUNT_LIMIT}+" for state, number in cell.counts.items()}
    facts = ", ".join(f"{number} {STATES[state]}" for state, number in counts.items())
    tone = TONES[worst]
    shapes = [svg.rect(x, y, SIDE, SIDE, f"dash-cell dash-{tone}", rx=3)]
    # Colour alone is not enough for colour-blind users, so bad hours and hours with a warning have a symbol, too.
    if tone == "bad":
        shapes.append(svg.path(f"M{x + 6} {y + 6}l8 8m0-8l-8 8", "dash-mark"))
    elif tone == "warn":
        shapes.append(svg.path(f"M{x + 5} {y + 10}h10", "dash-mark"))
    # The link filters by primary keys, because the list finds primary keys fast. If the worst state is not
    # SUCCEEDED, the link also filters by this state.
    filters: dict[str, object] = {"id__gte": cell.first, "id__lt": cell.end}
    if worst is not State.SUCCEEDED:
        filters["state"] = worst.value
    return svg.link(viewer.list_of("schedulerexecution", **filters), f"{hour}: {facts}", *shapes)
