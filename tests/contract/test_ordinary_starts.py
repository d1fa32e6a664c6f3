"""Ordinary starts hold nothing, on every database and with both transports: a thousand on SQLite, 300 on a server.

A start is a process that knows nothing yet: it looks, asks the broker, and beats. Between the starts happen fail-overs
that lose some seconds, clocks that jump, long times without a process, broken files, and brokers that lost all queues.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.core.deployment import LOST_TAIL_SECONDS
from scheduling.models import Deployment
from scheduling.processes.guard import Guard
from tests.contract.conftest import Connect
from tests.factories import SchedulerExecutionFactory
from tests.hostile import fuzz

pytestmark = pytest.mark.django_db(transaction=True)

STARTS = int(os.environ.get("TEST_STARTS", "300" if os.environ.get("TEST_DATABASE_URL") else "1000"))
LOST = LOST_TAIL_SECONDS - 20
"""A beat adds five seconds, and the file and the broker may be two beats ahead of a standby."""


def test_ordinary_starts_hold_nothing(connect: Connect, tmp_path: Path, settings: Any) -> None:
    settings.CRON_BEAT_FILE = str(tmp_path / "beat.json")
    SchedulerExecutionFactory(succeeded=True)
    Deployment.objects.update(worked=10_000)
    random, broker = fuzz.generator("ordinary starts"), connect()
    living = [Guard() for _number in range(3)]
    holds = []
    for number in range(STARTS):
        now = clock.now() + random.choice([timedelta(0), timedelta(days=-3), timedelta(days=60)])
        new = Guard()
        holds += [hold for hold in (new.look(broker), *(each.beat(broker, now) for each in (new, *living))) if hold]
        living[number % 3] = new
        if number % 10 == 0:
            row = Deployment.objects.get()
            Deployment.objects.update(worked=max(0, row.worked - random.randrange(LOST)))
        if number % 50 == 0:
            Path(settings.CRON_BEAT_FILE).write_text("damaged")
    assert holds == []
    assert Deployment.objects.get().worked > 10_000 - STARTS
    assert Deployment.objects.get().held_at is None
