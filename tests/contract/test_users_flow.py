"""With a real RabbitMQ, a report and its retries fail. Then an operator republishes the execution, and it succeeds.

The test reads the delay of each retry from the broker's time stamps. FLOW_DELAY_MS sets the first delay: 2 s by
default. With FLOW_DELAY_MS=30000, the delays are 30, 60 and 120 s.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone as clock

from reports.models import Report
from scheduling.models import Artefact, Attempt, Scheduler, SchedulerExecution
from tests.admin.inbox import LIST, ask, confirm
from tests.contract.delivery_recorder import DeliveryRecorder
from tests.contract.server import Server
from tests.factories import UserFactory, due
from tests.support import Commands, marks, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

DELAY_MS = int(os.environ.get("FLOW_DELAY_MS", "2000"))
SECONDS = [DELAY_MS * factor // 1000 for factor in (1, 2, 4)]


@pytest.fixture
def recorder(server: Server) -> Iterator[DeliveryRecorder]:
    """Provide a proxy between the consumer and the broker. The proxy records the waits of messages in wait queues."""
    recorder = DeliveryRecorder(*server.address)
    yield recorder
    recorder.close()


def test_a_failing_report_is_retried_parked_republished_and_succeeds(
    commands: Commands, server: Server, recorder: DeliveryRecorder, tmp_path: Path, settings: Any
) -> None:
    settings.BROKER_URL = server.url()
    environment = {"BROKER_URL": server.url(recorder.port), "CRON_RETRY_DELAY_MS": str(DELAY_MS)}
    fleet = [commands.start(name, **environment) for name in ("run_scheduler", "run_worker")]
    commands.ready(*fleet)
    down = tmp_path / "down"
    down.touch()
    schedule = Scheduler.objects.create(
        report=Report.objects.get(controller="tests.tokens"),
        schedule="0 12 * * *",
        params={"directory": str(tmp_path)},
        description="Refresh tokens",
    )
    due(schedule, clock.now().replace(second=0, microsecond=0) - timedelta(minutes=1))

    def row() -> SchedulerExecution | None:
        return SchedulerExecution.objects.filter(scheduler=schedule).first()

    # The retries come after 1, 2 and 4 times the delay. After the third retry, the execution has failed for good.
    failed = wait_for(
        lambda: (found := row()) and found.state == "failed" and found, "it fails for good", sum(SECONDS) + 60
    )
    server.wait_count(server.topology.failed, 1)
    assert [wait.queue for wait in recorder.waits] == [f"{server.name('main')}_retry.{seconds}" for seconds in SECONDS]
    assert [wait.count for wait in recorder.waits] == [1, 1, 1]
    ended = list(Attempt.objects.filter(execution=failed).order_by("number"))
    assert [attempt.outcome for attempt in ended] == ["failed"] * 4
    for attempt, wait, seconds in zip(ended, recorder.waits, SECONDS, strict=False):
        # The broker's time stamps have whole seconds, so a wait can look up to one second too short.
        assert (wait.ended_at - attempt.finished_at).total_seconds() > seconds - 1
    assert len([line for line in marks(tmp_path, failed.pk) if line.startswith("start")]) == 4

    ((properties, body),) = look(server)
    parked = json.loads(body)
    assert parked["retry_count"] == 3
    assert "the token service does not answer" in parked["failed_reason"]
    assert parked["failed_at"]
    assert properties.headers["x-retry-count"] == 3
    log = commands.log(fleet[1])
    for number, seconds in enumerate(SECONDS, 1):
        assert f"Scheduling retry {number}/3 in {seconds * 1000}ms" in log
    assert log.count("PERMANENTLY FAILED TASK") == 1

    # An operator removes the cause and republishes the execution.
    down.unlink()
    client = Client()
    client.force_login(UserFactory(superuser=True))
    page = client.get(LIST).content.decode()
    assert "Refresh tokens" in page
    assert "the token service does not answer" in page
    confirm(client, ask(client, "republish_selected", [failed]))
    wait_for(lambda: (found := row()) and found.state == "succeeded", "it succeeds")
    assert "Refresh tokens" not in client.get(LIST).content.decode()
    server.wait_count(server.topology.failed, 0)
    server.wait_count(server.name("main"), 0)
    assert SchedulerExecution.objects.filter(scheduler=schedule).count() == 1
    assert [attempt.outcome for attempt in Attempt.objects.order_by("number")] == ["failed"] * 4 + ["succeeded"]
    assert Artefact.objects.filter(execution=failed).exists()


def look(server: Server) -> list[tuple[Any, bytes]]:
    """Return the messages of the failed queue. They stay in the queue."""
    found = []
    while (message := server.channel.basic_get(server.topology.failed))[0] is not None:
        found.append(message[1:])
    server.channel.basic_recover(requeue=True)
    server.wait_count(server.topology.failed, len(found))
    return found
