"""A handler asks for further runs. The child that ran it is used again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from scheduling.api import run, wait
from scheduling.execution.own_broker import close_own_broker
from scheduling.models import Attempt
from tests.support import Commands

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def transport(broker_url: str, settings: Any) -> Iterator[str]:
    """Provide the URL of the transport that this process uses, too."""
    settings.BROKER_URL = broker_url
    yield broker_url
    close_own_broker()


def test_a_handler_asks_for_runs(commands: Commands, transport: str) -> None:
    worker = commands.start("run_worker", BROKER_URL=transport)
    commands.ready(worker)
    asked = [run("tests.fan_out").id for _ in range(5)]
    made = [pk for first in asked for pk in wait(first, 60).result]
    assert [wait(pk, 60).state for pk in made] == ["succeeded"] * 10
    assert len(set(made)) == 10
    pids = Attempt.objects.filter(execution__in=[*asked, *made]).values_list("pid", flat=True)
    # A child that keeps a thread or a socket is replaced: each of the five would leave one. On a loaded machine, one
    # that is still about to close its connection is replaced, too.
    assert len(set(pids)) <= 2, "the child that asked for runs is used again"
    assert commands.stop(worker) == 0
