"""docs/recovery.md: a failed deploy is mended through each of the three doors, as the page says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from reports.models import Report
from scheduling.api import wait
from scheduling.models import Attempt, FailedExecution, Scheduler, SchedulerExecution
from scheduling.operations.actor import Actor
from scheduling.operations.schedule_state import run
from scheduling.operations.tokens import make_token
from tests.admin.inbox import LIST, ask, confirm
from tests.factories import PASSWORD, SchedulerFactory, UserFactory
from tests.http.client import started_web
from tests.support import ROOT, Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

PAGE = ROOT / "docs" / "recovery.md"
RUNS = 3
STEPS = 5
MENDED = 3
"""The number of the step in which the code is mended."""

Door = Callable[[int], str]
"""Does what one step of the page says, and returns what it prints."""


def blocks(door: str) -> dict[int, str]:
    """The shell commands of a door, by the number of their step."""
    found: dict[int, str] = {}
    for section in re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        block = re.search(rf"^```sh {door}\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
        if block is not None:
            found[int(section.split()[0])] = block[1]
    assert found.keys() == set(range(1, STEPS + 1)) - {MENDED}, "each step stands there"
    return found


def by_shell(door: str, environment: dict[str, str]) -> Door:
    """The door of the commands that stand on the page."""
    steps = blocks(door)

    def do(number: int) -> str:
        done = subprocess.run(
            ["bash", "-e", "-c", steps[number]], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, (number, done.stdout, done.stderr)
        return done.stdout

    return do


def by_admin(user: User, schedule: Scheduler) -> Door:
    """The door of the pages."""
    client = Client()
    assert client.login(username=user.username, password=PASSWORD)

    def do(number: int) -> str:
        page = reverse("admin:scheduling_scheduler_change", args=[schedule.pk])
        if number == 1:
            dashboard = client.get(reverse("admin:scheduling_dashboard_changelist"))
            return dashboard.content.decode() + client.get(f"{LIST}?group=error").content.decode()
        if number == 2:
            reason = {"reason": "the token service has moved"}
            return str(client.post(page.replace("change/", "pause/"), reason).content.decode())
        if number == 4:
            group = FailedExecution.objects.filter(state="failed").values_list("fingerprint", flat=True)[0]
            address = f"{LIST}?fingerprint={group}"
            rows = list(FailedExecution.objects.filter(state="failed"))
            asked = ask(client, "republish_selected", rows[:1], address, across=True)
            return str(asked.content.decode() + confirm(client, asked, address).content.decode())
        client.post(page.replace("change/", "resume/"), {})
        runs = reverse("admin:scheduling_schedulerexecution_changelist")
        shown = client.get(f"{runs}?scheduler={schedule.pk}&state=succeeded")
        return str(shown.content.decode() + client.get(LIST).content.decode())

    return do


@pytest.mark.parametrize("name", ["admin", "http", "command"])
def test_a_failed_deploy_is_mended(name: str, commands: Commands, free_port: int, tmp_path: Path) -> None:
    directory = tmp_path / "marks"
    directory.mkdir()
    (directory / "down").touch()
    params: dict[str, Any] = {"params": {"directory": str(directory)}}
    report = Report.objects.update_or_create(controller="tests.tokens", defaults=params)[0]
    schedule = SchedulerFactory(worker=None, report=report, schedule="0 8 * * *", max_retries=0)
    user = UserFactory(superuser=True)
    commands.ready(commands.start("run_worker", "--concurrency", "2"))
    environment = {**commands.environment, "PATH": f"{Path(sys.executable).parent}:{commands.environment['PATH']}"}
    environment |= {"SCHEDULE": str(schedule.pk), "CRON_AS": user.username}
    if name == "admin":
        door = by_admin(user, schedule)
    else:
        if name == "http":
            assert shutil.which("curl"), "curl is not installed"
            environment |= {"SITE": started_web(commands, free_port), "TOKEN": make_token(user, "recovery")[1]}
        door = by_shell(name, environment)
    failed = [fail(user, schedule) for _ in range(RUNS)]

    assert "ConnectionError" in door(1)
    door(2)
    schedule.refresh_from_db()
    assert (schedule.status, schedule.pause_reason) == (False, "the token service has moved")
    (directory / "down").unlink()
    assert str(RUNS) in door(4)
    assert {wait(pk, 60).state for pk in failed} == {"succeeded"}
    assert {Attempt.objects.filter(execution=pk).count() for pk in failed} == {2}
    shown = door(5)
    assert all(str(pk) in shown for pk in failed)
    schedule.refresh_from_db()
    assert (schedule.status, schedule.pause_reason) == (True, "")
    assert not FailedExecution.objects.filter(state="failed").exists()
    # The same history, whichever the door.
    acts = [entry.get_change_message().partition(" (")[0] for entry in LogEntry.objects.filter(user=user)]
    assert sum(act == "republish" for act in acts) == RUNS


def fail(user: User, schedule: Scheduler) -> int:
    """Run the schedule once and wait until the run has failed. Returns the id of the run."""
    pk = run(Actor(user), schedule.pk).pk
    wait_for(lambda: SchedulerExecution.objects.get(pk=pk).state == "failed", "it fails")
    return pk
