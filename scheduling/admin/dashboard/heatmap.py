"""Heat map: seven days by 24 hours, each hour coloured by the worst that happened in it.

How it is fast with a million rows, without a table of sums that every settle would have to keep right
(a republished failure changes an hour of last week): the keys at which the hours begin are found by
primary key (`edges`), and each hour is then asked, state by state, for as many rows as its label can say.
That is one seek in the index (state, -id) for an hour and a state, and at most `MOST` steps from there:
the work follows the 168 hours, not the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from django.db import connections, router
from django.utils.formats import date_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin import svg
from scheduling.admin.chips import STATES
from scheduling.admin.dashboard.edges import first_keys
from scheduling.admin.dashboard.viewer import Viewer
from scheduling.core.lifecycle import State
from scheduling.models import SchedulerExecution

DAYS = 7
MOST = 100
"""Rows of one state that are counted in one hour; a label says `100+` beyond."""

WORST = (State.FAILED, State.RETRYING, State.SKIPPED, State.DISCARDED, State.CANCELLED, State.SUCCEEDED)
"""The worst first. What waits or runs is in the tiles."""

TONES = {
    State.FAILED: "bad",
    State.RETRYING: "warn",
    State.SKIPPED: "warn",
    State.DISCARDED: "off",
    State.CANCELLED: "off",
    State.SUCCEEDED: "good",
}

SIDE, GAP, LEFT, TOP = 20, 3, 54, 18


@dataclass
class Cell:
    """One hour, from its first key up to the next hour's."""

    start: datetime
    first: int = 0
    end: int = 0
    counts: dict[State, int] = field(default_factory=dict)

    @property
    def worst(self) -> State | None:
        """The worst state that there is a row of."""
        return next((state for state in WORST if self.counts.get(state)), None)


def heatmap(viewer: Viewer) -> dict[str, Any]:
    """The picture, and the zone in which its hours are read."""
    cells = _cells(viewer)
    return {"picture": _draw(cells, viewer), "zone": viewer.zone, "any": any(cell.counts for cell in cells)}


def _cells(viewer: Viewer) -> list[Cell]:
    today = viewer.now.astimezone(viewer.zone).date()
    starts = [
        datetime(day.year, day.month, day.day, hour, tzinfo=viewer.zone)
        for day in (today - timedelta(days=back) for back in range(DAYS - 1, -1, -1))
        for hour in range(24)
    ]
    # Where the clocks change an hour is missing, and its cell empty, or comes twice, and its cell has both.
    keys = first_keys([*starts, starts[-1] + timedelta(hours=1)])
    cells = [Cell(start, *pair) for start, pair in zip(starts, pairwise(keys), strict=True)]
    _count([cell for cell in cells if cell.first < cell.end])
    return cells


def _count(cells: list[Cell]) -> None:
    """One statement for each state, with a bounded count of each hour as a column.

    Not by the ORM, which takes a hundred times as long to write 168 subqueries as the database to answer.
    """
    if not cells:
        return
    connection = connections[router.db_for_read(SchedulerExecution)]
    name, meta = connection.ops.quote_name, SchedulerExecution._meta
    table, state, key = name(meta.db_table), name("state"), name("id")
    column = (
        f"(SELECT COUNT(*) FROM (SELECT 1 AS one FROM {table} "  # noqa: S608 - names of our own table
        f"WHERE {state} = %s AND {key} >= %s AND {key} < %s LIMIT {MOST + 1}) some)"
    )
    for each in WORST:
        params = [value for cell in cells for value in (each.value, cell.first, cell.end)]
        with connection.cursor() as cursor:
            cursor.execute("SELECT " + ", ".join([column] * len(cells)), params)
            row = cursor.fetchone()
        for cell, number in zip(cells, row, strict=True):
            if number:
                cell.counts[each] = number


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
    facts = ", ".join(
        f"{number if number <= MOST else f'{MOST}+'} {STATES[state][0]}" for state, number in cell.counts.items()
    )
    tone = TONES[worst]
    shapes = [svg.rect(x, y, SIDE, SIDE, f"dash-cell dash-{tone}", rx=3)]
    # Not by colour alone: the worst two have a mark.
    if tone == "bad":
        shapes.append(svg.path(f"M{x + 6} {y + 6}l8 8m0-8l-8 8", "dash-mark"))
    elif tone == "warn":
        shapes.append(svg.path(f"M{x + 5} {y + 10}h10", "dash-mark"))
    # By keys, which the list finds at once; the state narrows it to what colours the cell.
    filters: dict[str, object] = {"id__gte": cell.first, "id__lt": cell.end}
    if worst is not State.SUCCEEDED:
        filters["state"] = worst.value
    return svg.link(viewer.list_of("schedulerexecution", **filters), f"{hour}: {facts}", *shapes)
