"""No page asks for schedules or executions past the rule about groups, except where a reason is written down here."""

from __future__ import annotations

import re
from pathlib import Path

import scheduling.admin
from tests.support import ROOT

ASKED = re.compile(r"\b(?:Scheduler|SchedulerExecution|FailedExecution|Replay)\.objects\b")

PLACES = {
    "ui/first_keys.py": (3, "only primary keys and times of claims"),
    "common/param_search.py": (1, "a query that is never run"),
    "executions/search.py": (1, "only the first and the last primary key"),
    "executions/spans.py": (1, "only the last primary key"),
    "executions/duration.py": (1, "only a primary key at the end of a range"),
    "executions/similar.py": (1, "`newest_values` applies the rule"),
    "executions/rerun.py": (1, "a key that the page itself has made"),
    "pauses/form.py": (1, "names of queues, for users who see all groups"),
    "schedulers/run_now.py": (1, "keys that the page itself has made"),
    "schedulers/admin.py": (1, "the row of the page, which the user sees"),
    "schedulers/overview.py": (1, "the row of the page, which the user sees"),
    "schedulers/pause.py": (1, "the row of the page, which the user sees"),
    "replays/rows.py": (1, "executions of replays that the user sees"),
    "replays/outcome.py": (1, "executions of replays that the user sees"),
    "inbox/edit_republish.py": (1, "the row of the page, which the user sees"),
    "inbox/not_moved.py": (1, "the row of the page, which the user sees"),
    "inbox/single.py": (1, "the row of the page, which the user sees"),
    "inbox/groups.py": (1, "rows that the list of the user has found"),
    "inbox/actions.py": (1, "rows that the list of the user has found"),
    "inbox/admin.py": (1, "`in_parts` applies the rule"),
    "dashboard/attention.py": (1, "rows that a finding of the user has named"),
    "dashboard/tiles.py": (1, "`newest_values` applies the rule"),
}
"""How often a file asks for rows of all groups, and why it may."""


def test_each_place_that_asks_for_rows_of_all_groups_has_a_reason() -> None:
    folder = Path(scheduling.admin.__file__).parent
    assert ROOT in folder.parents
    found = {
        str(path.relative_to(folder)): number
        for path in sorted(folder.rglob("*.py"))
        if (number := len(ASKED.findall(path.read_text())))
    }
    wanted = {name: number for name, (number, _reason) in PLACES.items()}
    assert found == wanted, "use Visibility (scheduling/models/visibility.py), or write the reason down here"
