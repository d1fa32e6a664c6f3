"""Plain SQL has written hostile values into rows. Lists still have the good rows and name the bad ones, and an address
of one row answers with the row or with a problem document.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection, models
from django.utils import timezone as clock

from scheduling.handlers.targets import sync_targets
from scheduling.management.groups import EDITOR, make_groups
from scheduling.models import Calendar, Process, Scheduler, SchedulerExecution
from tests.factories import (
    CalendarFactory,
    FailedExecutionFactory,
    GroupFactory,
    ProcessFactory,
    SchedulerFactory,
    UserFactory,
)
from tests.hostile import fuzz
from tests.hostile.standing_rows import BATCH, all_columns, spoil, stand
from tests.hostile.tries import Faults
from tests.hostile.values import Spoiled, empty
from tests.http.client import ApiClient

pytestmark = pytest.mark.django_db(transaction=True)

LISTS = {"calendars": Calendar, "schedulers": Scheduler, "executions": SchedulerExecution, "processes": Process}
OTHER = (
    "failed", "failed/groups", "health", "handlers", "executions?q=total", "schedulers?health=failing",
    "executions?state=failed&since=2020-01-01T00:00:00Z", "schedulers?q=e", "failed?type=worker",
    "executions?q=param:x=1",
)  # fmt: skip
SINGLE = {
    Calendar: ("calendars/{}",),
    Scheduler: ("schedulers/{}", "schedulers/{}/next", "schedulers/{}/why?at=2026-03-10T12:00:00Z"),
    SchedulerExecution: ("executions/{}", "executions/{}/output", "executions/{}/artefacts/1"),
}
POSTS = {
    Scheduler: ("schedulers/{}/pause", "schedulers/{}/resume", "schedulers/{}/run"),
    SchedulerExecution: ("executions/{}/cancel", "executions/{}/rerun"),
}


@pytest.fixture(autouse=True)
def cleared(settings: Any, tmp_path: Path) -> Iterator[None]:
    settings.MEDIA_ROOT, settings.CRON_API_PER_MINUTE = tmp_path, 1_000_000
    yield
    empty()
    sync_targets()


def keys_of(model: type[models.Model]) -> set[Any]:
    """Return the keys of all rows of a table, as SQL has them."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {connection.ops.quote_name('id')} FROM {connection.ops.quote_name(model._meta.db_table)}"
        )
        return {row[0] for row in cursor.fetchall()}


class Reader:
    """Asks for rows as one user, and collects what is wrong with the answers."""

    def __init__(self, client: ApiClient, faults: Faults, answers: Counter[int]) -> None:
        self.client, self.faults, self.answers = client, faults, answers

    def ask(self, method: str, path: str) -> Any:
        """Return the JSON of an answer; None if it is a problem document."""
        try:
            response = self.client.send(method, path, None if method == "GET" else {})
        except Exception as error:
            self.faults.add(f"{method} {path.strip('0123456789')} {type(error).__name__} {error!s:.200}", 0, path)
            return None
        self.answers[response.status_code] += 1
        body = b"".join(response.streaming_content) if response.streaming else response.content
        if response.status_code < 400:
            return None if response.streaming else json.loads(body)
        problem = json.loads(body)
        if response.headers["Content-Type"] != "application/problem+json" or not problem["detail"]:
            self.faults.add(f"{method} {path}: no problem document", 0, body[:200])
        return None

    def lists(self, good: dict[type[models.Model], int], is_limited: bool) -> None:
        """Check that each list has the good row, and that it has or names each other row."""
        for path, model in LISTS.items():
            found = self.ask("GET", f"{path}?limit=200")
            if found is None:
                self.faults.add(f"the list {path} is refused", 0, "")
                continue
            items = {item["id"] for item in found["items"]}
            named = {item["id"] for item in found["unusable"]}
            if good[model] not in items:
                self.faults.add(f"the list {path} lacks the good row", 0, found["unusable"])
            if (missing := keys_of(model) - items - named) and not is_limited:
                self.faults.add(f"the list {path} has and names not all rows", 0, missing)

    def others(self, pick: Random) -> None:
        """Ask each other address for each row, and let some rows run, pause or be cancelled."""
        for path in OTHER:
            self.ask("GET", path)
        for model, paths in SINGLE.items():
            for key in keys_of(model):
                for path in paths:
                    self.ask("GET", path.format(key))
        for model, paths in POSTS.items():
            for key in pick.sample(sorted(keys_of(model)), 5):
                self.ask("POST", pick.choice(paths).format(key))


def good_rows() -> dict[type[models.Model], int]:
    """Store rows that are good, and refer to good rows only. The execution has failed."""
    schedule = SchedulerFactory(rare=True, handler="tests.mark")
    return {
        Calendar: CalendarFactory().pk,
        Scheduler: schedule.pk,
        SchedulerExecution: FailedExecutionFactory(scheduler=schedule).pk,
        Process: ProcessFactory().pk,
    }


def readers(faults: Faults, answers: Counter[int]) -> list[tuple[Reader, bool]]:
    """Return a superuser, and an editor who sees only what belongs to a team or to no group."""
    list(make_groups())
    editor = UserFactory()
    editor.groups.add(Group.objects.get(name=EDITOR), GroupFactory())
    made = ((ApiClient(UserFactory(superuser=True)), False), (ApiClient(editor), True))
    return [(Reader(client, faults, answers), is_limited) for client, is_limited in made]


@pytest.mark.long
def test_lists_have_the_good_rows_and_name_the_bad_ones() -> None:
    pick, amount = fuzz.generator("api rows"), fuzz.amount(fuzz.STANDING, BATCH)
    source, total, faults, answers = all_columns(pick), 0, Faults(), Counter[int]()
    while total < amount:
        empty()
        sync_targets()
        spoiled: Sequence[Spoiled] = spoil(pick, source, stand(clock.now()))
        known = len(faults.found)
        good, total = good_rows(), total + len(spoiled)
        for reader, is_limited in readers(faults, answers):
            reader.lists(good, is_limited)
            reader.others(pick)
        if len(faults.found) > known:
            faults.add("spoiled", 0, "; ".join(map(str, spoiled)))
    fuzz.report("api rows", standing=total, requests=answers.total(), answers=dict(sorted(answers.items())))
    faults.check()
