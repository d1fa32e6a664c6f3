"""No door asks for schedules or executions past the rule about groups, except where a reason is written down here."""

from __future__ import annotations

import re
from pathlib import Path

import scheduling
from tests.support import ROOT

ASKED = re.compile(r"\b(?:Scheduler|SchedulerExecution|FailedExecution|Replay)\.objects\b")

PLACES = {
    "admin/executions/spans.py": (1, "only the last primary key"),
    "admin/executions/duration.py": (1, "only a primary key at the end of a range"),
    "admin/executions/similar.py": (1, "`newest_values` applies the rule"),
    "admin/executions/rerun.py": (1, "a key that the page itself has made"),
    "admin/pauses/form.py": (1, "names of queues, for users who see all groups"),
    "admin/schedulers/run_now.py": (1, "keys that the page itself has made"),
    "admin/schedulers/admin.py": (1, "the row of the page, which the user sees"),
    "admin/schedulers/overview.py": (1, "the row of the page, which the user sees"),
    "admin/schedulers/pause.py": (1, "the row of the page, which the user sees"),
    "admin/replays/rows.py": (1, "executions of replays that the user sees"),
    "admin/replays/outcome.py": (1, "executions of replays that the user sees"),
    "admin/inbox/edit_republish.py": (1, "the row of the page, which the user sees"),
    "admin/inbox/not_moved.py": (1, "the row of the page, which the user sees"),
    "admin/inbox/single.py": (1, "the row of the page, which the user sees"),
    "admin/inbox/actions.py": (1, "rows that the list of the user has found"),
    "admin/inbox/admin.py": (1, "`in_parts` applies the rule"),
    "admin/dashboard/attention.py": (1, "rows that a finding of the user has named"),
    "admin/dashboard/tiles.py": (1, "`newest_values` applies the rule"),
    "operations/executions.py": (1, "a key that the request itself has made"),
    "operations/failure_groups.py": (1, "samples of groups that the actor sees"),
    "operations/failures.py": (1, "rows that the selection of the actor has found"),
    "operations/replays.py": (1, "a key of the request"),
    "operations/param_search.py": (1, "only how a query is written"),
    "operations/schedule_check.py": (1, "a name is unique among all schedules"),
    "operations/schedule_entry.py": (1, "a name is unique among all schedules"),
    "operations/schedule_state.py": (1, "a key that the request itself has made"),
    "operations/shaping.py": (2, "rows whose keys a query of the actor has found"),
}
"""How often a file asks for rows of all groups, and why it may."""


def test_each_place_that_asks_for_rows_of_all_groups_has_a_reason() -> None:
    folder = Path(scheduling.__file__).parent
    assert ROOT in folder.parents
    found = {
        str(path.relative_to(folder)): number
        for room in ("admin", "operations", "http", "management/cron")
        for path in sorted((folder / room).rglob("*.py"))
        if (number := len(ASKED.findall(path.read_text())))
    }
    wanted = {name: number for name, (number, _reason) in PLACES.items()}
    assert found == wanted, "use Visibility (scheduling/models/visibility.py), or write the reason down here"
