"""A database that was copied or restored holds its fire: nothing starts until a person has confirmed it.

The handlers write marks outside of the database. `TEST_HOLDS` says how often each scenario is repeated (1,000 ordinary
starts are in `tests/contract/test_ordinary_starts.py`).
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone as clock

from scheduling.broker import Broker, get_broker
from scheduling.core.deployment import Held, decode_note
from scheduling.execution.confirm import ERROR_CLASS, confirm
from scheduling.execution.run_now import run_now
from scheduling.models import Deployment, Scheduler, SchedulerExecution
from scheduling.processes.guard import guard
from tests.backup import EVERYTHING, Backup, dump, restore
from tests.factories import ManualExecutionFactory, SchedulerFactory, due
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

TIMES = int(os.environ.get("TEST_HOLDS", "1"))

OBSERVED_SECONDS = 1.5
"""A producer looks for due schedules each half second, and a consumer for messages each second."""

SOON = timedelta(seconds=1.5)
HOUR = 3_600


class Site:
    """A producer and a consumer of one deployment, and the work that a test gives them."""

    def __init__(self, commands: Commands, directory: Path, broker_url: str, name: str = "") -> None:
        self.commands, self.directory, self.broker_url = commands, directory, broker_url
        self.environment = {"BROKER_URL": broker_url, "CRON_LEASE_SECONDS": "3", "CRON_DEPLOYMENT": name}
        self.processes: list[subprocess.Popen[bytes]] = []
        self.broker: Broker = get_broker(broker_url)

    def start(self) -> None:
        self.processes = [self.commands.start(name, **self.environment) for name in ("run_scheduler", "run_worker")]
        self.commands.ready(*self.processes)

    def stop(self) -> None:
        for process in self.processes:
            assert self.commands.stop(process) == 0, self.commands.log(process)

    def schedule(self, name: str) -> Scheduler:
        """A schedule whose runs leave their marks under this name."""
        (self.directory / name).mkdir()
        params = {"directory": str(self.directory / name)}
        row: Scheduler = SchedulerFactory(rare=True, handler="tests.mark", description=name, params=params)
        return row

    def starts(self, name: str) -> int:
        """How often a run of this name has started."""
        files = (self.directory / name).glob("*.txt")
        return sum(line.startswith("start") for file in files for line in file.read_text().splitlines())

    def give(self, number: int) -> None:
        """A schedule that falls due soon, and an execution that waits until then."""
        at = clock.now() + SOON
        due(self.schedule(f"due{number}"), at)
        state = {} if self.broker.embedded else {"claimed": True}
        ManualExecutionFactory(scheduler=self.schedule(f"waiting{number}"), wake_at=at, **state)

    def given(self, number: int) -> tuple[int, int]:
        """How often the schedule and the execution of `give` have started."""
        return self.starts(f"due{number}"), self.starts(f"waiting{number}")

    def messages(self) -> object:
        """The ready messages of the broker; nothing with the database transport."""
        return None if self.broker.embedded else self.broker.counts().ready

    def run(self, name: str) -> None:
        """Run a schedule now, and wait for it."""
        run_now(self.schedule(name), self.broker)
        wait_for(lambda: self.starts(name) == 1, f"{name} runs\n{self.logs()}")
        self.settled()

    def settled(self) -> None:
        """Wait until every execution has ended."""
        done = ["succeeded", "failed", "skipped"]
        wait_for(lambda: not SchedulerExecution.objects.exclude(state__in=done).exists(), "all is recorded")

    def logs(self) -> str:
        return "\n".join(self.commands.log(process) for process in self.processes)

    def assert_holds(self) -> None:
        """Nothing is claimed, started or published for some time."""

        def facts() -> object:
            rows = SchedulerExecution.objects.order_by("pk").values_list("pk", "state", "attempt", "published_at")
            plans = Scheduler.objects.order_by("pk").values_list("pk", "next_run_at")
            marks = sorted((str(path), path.read_text()) for path in self.directory.glob("*/*.txt"))
            return list(rows), list(plans), marks, self.messages()

        before = facts()
        time.sleep(OBSERVED_SECONDS)
        assert facts() == before, self.logs()

    def noted(self, worked: int) -> bool:
        """Whether the file beside the data, and the broker, know that the processes have worked so long."""
        try:
            lines = json.loads((self.commands.directory / "beat.json").read_text())
        except (OSError, ValueError):
            return False
        bodies = [line.encode() for line in lines]
        kept = self.broker.newest_beat()
        if not self.broker.embedded:
            bodies = [*bodies[:1], kept or b""]
        notes = [decode_note(body) for body in bodies]
        timeline = Deployment.objects.get().timeline
        found = [note for note in notes if note is not None and note.timeline == timeline]
        return len(found) == (1 if self.broker.embedded else 2) and all(note.worked >= worked for note in found)


@pytest.fixture
def own_directory(tmp_path: Path) -> Path:
    (tmp_path / "marks").mkdir()
    return tmp_path / "marks"


def test_a_database_of_another_deployment_starts_nothing_until_it_is_confirmed(
    commands: Commands, own_directory: Path, broker_url: str, settings: Any
) -> None:
    settings.CRON_DEPLOYMENT, settings.BROKER_URL = "staging", broker_url
    site = Site(commands, own_directory, broker_url, "staging")
    for number in range(TIMES):
        hold_the_copy(site, number)
        run_the_copy(site, number, run_waiting=bool(number % 2))
    assert SchedulerExecution.objects.filter(error_class=ERROR_CLASS).count() == (TIMES + 1) // 2
    site.stop()
    site.broker.close()


def hold_the_copy(site: Site, number: int) -> None:
    """Load a copy of production, under processes that run from the second time on."""
    with transaction.atomic():
        Deployment.objects.update(name="production", fingerprints="0" * 32, timeline=f"copy{number}")
        site.give(number)
    due_at = Scheduler.objects.filter(description=f"due{number}").values_list("next_run_at", flat=True)
    assert due_at[0] is not None
    if not number:
        site.start()
        code, said = site.commands.run("doctor", "--only", "deployment", **site.environment)
        assert code == 1
        assert "belongs to “production”" in said
    wait_for(lambda: clock.now() > due_at[0], "it is due")  # type: ignore[operator]
    site.assert_holds()
    with pytest.raises(Held):
        run_now(Scheduler.objects.all()[0], site.broker)


def run_the_copy(site: Site, number: int, *, run_waiting: bool) -> None:
    done = confirm(clock.now(), "anna", run_waiting=run_waiting)
    assert done is not None
    site.run(f"after{number}")
    if run_waiting:
        wait_for(lambda: site.given(number) == (1, 1), f"both run\n{site.logs()}")
        site.settled()
    else:
        assert (done.skipped, done.set_aside) == (1, 1)
        assert site.given(number) == (0, 0), site.logs()


def test_a_database_restored_from_an_hour_ago_runs_nothing_again(
    commands: Commands, own_directory: Path, broker_url: str, settings: Any
) -> None:
    """Every second time the processes live through the restore; otherwise they are stopped meanwhile."""
    settings.BROKER_URL = broker_url
    site = Site(commands, own_directory, broker_url)
    site.start()
    site.run("first")
    for number in range(TIMES):
        backup = an_hour_passes(site, number)
        load(backup, site, alive=number % 2 == 0)
        confirm_the_restored(site, number, run_waiting=number % 4 > 1)
    site.stop()
    site.broker.close()


def an_hour_passes(site: Site, number: int) -> Backup:
    """Back up the database, then let the processes work. Returns the backup.

    The hour is added to the worked seconds, which count all that the processes know of time.
    """
    site.give(number)
    backup = dump(EVERYTHING)
    row = Deployment.objects.get()
    while not Deployment.objects.filter(worked=row.worked).update(worked=row.worked + HOUR):
        row.refresh_from_db()
    wait_for(lambda: site.given(number) == (1, 1), f"what was due runs\n{site.logs()}")
    site.run(f"later{number}")
    wait_for(lambda: site.noted(row.worked + HOUR + 2), f"the beats are noted\n{site.logs()}")
    return backup


def load(backup: Backup, site: Site, *, alive: bool) -> None:
    """Restore the backup, and look that nothing starts."""
    if not alive:
        site.stop()
    restore(backup)
    guard.forget()  # this process has looked at the database, too
    if not alive:
        site.start()
    wait_for(lambda: Deployment.objects.get().held_at is not None, f"a process has noticed it\n{site.logs()}")
    site.assert_holds()
    with pytest.raises(Held):
        run_now(Scheduler.objects.all()[0], site.broker)


def confirm_the_restored(site: Site, number: int, *, run_waiting: bool) -> None:
    done = confirm(clock.now(), "anna", run_waiting=run_waiting)
    assert done is not None
    assert done.skipped == 1
    site.run(f"after{number}")
    if run_waiting:  # a person has asked for it
        wait_for(lambda: site.given(number) == (1, 2), "what waits runs")
        site.settled()
    else:
        assert site.given(number) == (1, 1), site.logs()
    assert site.starts(f"later{number}") == 1
