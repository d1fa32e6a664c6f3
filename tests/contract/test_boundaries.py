"""The tests kill a process between two steps, for example between a database write and a publish.

No execution is lost. If an execution gets a second attempt, its first attempt is recorded as crashed or failed.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone as clock

from scheduling.broker import get_broker
from scheduling.inbox.sync import PARK_GRACE, sync
from scheduling.models import Attempt, SchedulerExecution
from tests.contract.server import Server, require
from tests.factories import SchedulerFactory, due
from tests.support import Commands, marks, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

PRODUCER, CONSUMER, CHILD = "run_scheduler", "run_worker", "child"

# Each case names the place of the kill (a key of PLACES in tests/apps/killer), the process that is killed and the
# handler. Then come the expected outcomes of the attempts, and how many starts the handler must have recorded.
BOTH = [
    ("rows inserted", PRODUCER, "tests.mark", ["succeeded"], 1),
    ("claim committed", PRODUCER, "tests.mark", ["succeeded"], 1),
    ("started", CONSUMER, "tests.mark", ["crashed", "succeeded"], 1),
    ("handler over", CHILD, "tests.mark", ["crashed", "succeeded"], 2),
    ("outcome heard", CONSUMER, "tests.mark", ["crashed", "succeeded"], 2),
    ("settled", CONSUMER, "tests.mark", ["succeeded"], 1),
    ("settled", CONSUMER, "tests.fail_once", ["failed", "succeeded"], 2),
    ("settled", CONSUMER, "tests.never_again", ["failed"], 0),
]
RABBITMQ = [
    ("published", PRODUCER, "tests.mark", ["succeeded"], 1),
    ("confirmed", PRODUCER, "tests.mark", ["succeeded"], 1),
    ("acknowledging", CONSUMER, "tests.mark", ["succeeded"], 1),
    ("retry published", CONSUMER, "tests.fail_once", ["failed", "succeeded"], 2),
    ("acknowledging", CONSUMER, "tests.fail_once", ["failed", "succeeded"], 2),
    ("failure parked", CONSUMER, "tests.never_again", ["failed"], 0),
    ("acknowledging", CONSUMER, "tests.never_again", ["failed"], 0),
]
CASES = [("database", *case) for case in BOTH] + [("rabbitmq", *case) for case in BOTH + RABBITMQ]


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    """Provide one set of queues for all cases, because new queues for each case would be slow."""
    require()
    with closing(Server()) as server:
        yield server


def has_state(execution: SchedulerExecution, state: str) -> bool:
    execution.refresh_from_db()
    return execution.state == state


@pytest.mark.parametrize(
    ("transport", "place", "victim", "handler", "outcomes", "starts"),
    CASES,
    ids=[f"{case[0]}-{case[1]}-{case[3]}".replace(" ", "_") for case in CASES],
)
def test_killed_at(
    commands: Commands,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    transport: str,
    place: str,
    victim: str,
    handler: str,
    outcomes: list[str],
    starts: int,
) -> None:
    server: Server | None = request.getfixturevalue("shared") if transport == "rabbitmq" else None
    if server is not None:
        server.empty()
    flag = tmp_path / "killed"
    environment = {
        "BROKER_URL": server.url() if server else "database://",
        "CRON_LEASE_SECONDS": "3",
        "EXTRA_APPS": "tests.apps.sample,tests.apps.killer",
        "KILL_FLAG": str(flag),
    }
    with_kill = {**environment, "KILL_AT": place}
    processes = {
        name: commands.start(
            name, **(with_kill if victim == name or (victim, name) == (CHILD, CONSUMER) else environment)
        )
        for name in (PRODUCER, CONSUMER)
    }
    commands.ready(*processes.values())
    row = SchedulerFactory(rare=True, handler=handler, params={"directory": str(tmp_path)} if starts else {})
    due(row, clock.now().replace(second=0, microsecond=0) - timedelta(minutes=1))
    wait_for(flag.exists, "a process was killed")
    if victim != CHILD:
        assert processes[victim].wait(10) == -signal.SIGKILL
        commands.start(victim, **environment)

    execution = wait_for(lambda: SchedulerExecution.objects.filter(scheduler=row).first(), "its row exists")
    state = "succeeded" if outcomes[-1] == "succeeded" else "failed"
    wait_for(lambda: has_state(execution, state), f"it has {state}")
    if server is not None:
        server.wait_count(server.name("main"), 0)
        if state == "failed":
            # A producer syncs the failed queue only once a minute, so the test itself runs a sync.
            with closing(get_broker(server.url())) as broker:
                sync(broker, clock.now() + PARK_GRACE)
            server.wait_count(server.topology.failed, 1)
            assert SchedulerExecution.objects.get(pk=execution.pk).published_at is not None

    assert SchedulerExecution.objects.filter(scheduler=row).count() == 1
    assert list(Attempt.objects.order_by("number").values_list("outcome", flat=True)) == outcomes
    assert [line.split()[1] for line in marks(tmp_path, execution.pk) if line.startswith("start")] == [
        str(number) for number, _ in enumerate(range(starts), 1 if len(outcomes) == starts else len(outcomes))
    ]
