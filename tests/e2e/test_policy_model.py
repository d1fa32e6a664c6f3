"""Schedules with all policies do what the model of the policies says: random times, edits, pauses, faults and kills.

The full volume, for each transport: `TEST_MODEL_SECONDS=1200`. TEST_SEED chooses the schedules and the events.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduling.core.skip_reasons import kind_of
from scheduling.execution.own_broker import close_own_broker
from scheduling.models import Attempt
from tests.e2e.policy_accounts import Accounts
from tests.e2e.policy_rows import rows_of
from tests.e2e.policy_site import SECONDS, SEED, Site
from tests.e2e.policy_starts import Starts, spans
from tests.support import Commands

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

SHOWN = 60
"""At most so many problems are shown."""


@pytest.fixture
def transport(broker_url: str, settings: Any) -> Iterator[str]:
    """Provide the URL of the transport. This process uses it, too."""
    settings.BROKER_URL, settings.CRON_SECONDS = broker_url, True
    yield broker_url
    close_own_broker()


def test_schedules_do_what_the_model_of_their_policies_says(commands: Commands, transport: str, tmp_path: Path) -> None:
    print(f"seed {SEED}")  # noqa: T201 - shown if the test fails
    site = Site(commands, tmp_path, transport)
    site.work(time.time() + SECONDS)
    site.finish()
    model = site.model
    rows = rows_of(model.stories)
    ended = Attempt.objects.filter(execution__scheduler__in=list(model.stories))
    ends = {(pk, number): at.timestamp() for pk, number, at in ended.values_list("execution", "number", "finished_at")}
    problems, starts, attempts = site.changes.problems, Starts(model, rows), 0
    for pk, story in model.stories.items():
        found = spans(tmp_path, story.name, site.processes.halts, ends)
        attempts += len(found)
        problems += Accounts(model, pk, [row for row in rows if row.schedule == pk]).problems()
        problems += starts.problems(pk, found)
    counted = sum(max(row.missed, 1) if row.state == "skipped" else 1 for row in rows if row.trigger == "cron")
    kinds = Counter(kind_of(row.reason).value for row in rows if row.state == "skipped")
    print(  # noqa: T201 - the figures of the acceptance test
        f"\n{transport.split(':')[0]}, seed {SEED}: {counted} instants, {len(rows)} rows, {attempts} attempts; "
        f"{dict(Counter(row.state for row in rows))}; skipped {dict(kinds)}; {dict(site.done + site.processes.done)}"
    )
    assert not problems, f"{len(problems)} problems:\n" + "\n".join(problems[:SHOWN])
    assert attempts
    assert kinds
    code, said = commands.run("audit_occurrences", CRON_SECONDS="true")
    assert code == 0, said
