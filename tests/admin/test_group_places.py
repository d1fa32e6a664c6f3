"""No door asks for schedules or executions past the rule about groups, except where a reason is written down here."""

from __future__ import annotations

import re
from pathlib import Path

import scheduling
from tests.support import ROOT

ASKED = re.compile(r"\b(?:Scheduler|SchedulerExecution|FailedExecution|Replay|Backfill)\.objects\b")

PLACES = {
    "admin/executions/spans.py": (1, "only the last primary key"),
    "admin/executions/duration.py": (1, "only a primary key at the end of a range"),
    "admin/executions/similar.py": (1, "`newest_values` applies the rule"),
    "admin/executions/rerun.py": (1, "a key that the page itself has made"),
    "admin/pauses/form.py": (1, "names of queues, for users who see all groups"),
    "admin/schedulers/run_now.py": (1, "keys that the page itself has made"),
    "admin/schedulers/admin.py": (2, "the row of the page; its predecessor, which `is_named_to` names or not"),
    "admin/schedulers/after_fields.py": (
        3,
        "the predecessor of the row of the page, which is named only if it is seen",
    ),
    "admin/schedulers/overview.py": (1, "the row of the page, which the user sees"),
    "admin/schedulers/pause.py": (1, "the row of the page, which the user sees"),
    "admin/replays/rows.py": (1, "executions of replays that the user sees"),
    "admin/replays/outcome.py": (1, "executions of replays that the user sees"),
    "admin/inbox/edit_republish.py": (1, "the row of the page, which the user sees"),
    "admin/inbox/not_moved.py": (1, "the row of the page, which the user sees"),
    "admin/inbox/single.py": (1, "the row of the page, which the user sees"),
    "admin/inbox/actions.py": (1, "rows that the list of the user has found"),
    "admin/inbox/admin.py": (1, "`in_parts` applies the rule"),
    "admin/deployment/admin.py": (1, "only how many runs would follow, for users who may confirm the deployment"),
    "admin/dashboard/attention.py": (1, "rows that a finding of the user has named"),
    "admin/dashboard/tiles.py": (1, "`newest_values` applies the rule"),
    "operations/backfills.py": (2, "a key of the request, and a row that the actor sees"),
    "operations/backfill_shapes.py": (1, "rows whose keys a query of the actor has found"),
    "operations/executions.py": (1, "a key that the request itself has made"),
    "operations/failure_groups.py": (1, "samples of groups that the actor sees"),
    "operations/failures.py": (1, "rows that the selection of the actor has found"),
    "operations/replays.py": (1, "a key of the request"),
    "operations/predecessors.py": (1, "only whether a row exists"),
    "operations/why.py": (1, "only the words that all who see the schedule may read"),
    "operations/schedule_import.py": (3, "a name is unique among all schedules"),
    "operations/schedule_order.py": (1, "only keys of rows that a plan of the actor deletes"),
    "operations/param_search.py": (1, "only how a query is written"),
    "operations/schedule_check.py": (1, "a name is unique among all schedules"),
    "operations/schedule_entry.py": (1, "a name is unique among all schedules"),
    "operations/schedule_state.py": (1, "a key that the request itself has made"),
    "operations/occurrence_audit.py": (6, "a command of the site's owner, who sees everything"),
    "operations/revisions.py": (2, "whether a schedule exists, and the state of one that the actor sees"),
    "operations/site_load.py": (1, "the groups of the rows are compared after a bounded look"),
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
