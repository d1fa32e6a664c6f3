"""An outage of the database is one warning and one line at its end. A deadlock is not an outage."""

from __future__ import annotations

import threading

import pytest
from django.db import OperationalError, connection, transaction

from scheduling.core.database_errors import Verdict
from scheduling.models import Worker
from scheduling.processes.database import is_away, verdict_of
from tests.contract.proxy import Proxy
from tests.support import Commands, at_once, wait_for


@pytest.mark.django_db(transaction=True)
def test_a_deadlock_is_a_conflict() -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite locks the whole file, so there are no deadlocks")
    keys = [Worker.objects.create(name=f"lock-{number}").pk for number in range(2)]
    both = threading.Barrier(2)

    def lock(first: int, second: int) -> Exception | None:
        try:
            with transaction.atomic():
                Worker.objects.filter(pk=first).update(name=f"{first}-{second}-a")
                both.wait(10)
                Worker.objects.filter(pk=second).update(name=f"{first}-{second}-b")
        except OperationalError as error:
            return error
        return None

    (error,) = [found for found in at_once([lambda: lock(*keys), lambda: lock(*keys[::-1])]) if found]
    assert verdict_of(error) is Verdict.CONFLICT
    assert is_away(error)


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("command", ["run_worker", "run_scheduler"])
def test_a_process_logs_one_warning_while_the_database_is_away(commands: Commands, command: str) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has no server that could be away")
    config = connection.settings_dict
    port = int(config["PORT"] or {"mysql": 3306, "postgresql": 5432}[connection.vendor])
    proxy = Proxy(config["HOST"] or "127.0.0.1", port)
    try:
        url = commands.environment["DATABASE_URL"].replace(f":{port}/", f":{proxy.port}/")
        process = commands.start(command, DATABASE_URL=url, LOG_LEVEL="DEBUG", CRON_LEASE_SECONDS="3")
        commands.ready(process)
        proxy.shut()
        wait_for(lambda: commands.log(process).count("trying again") >= 4, "it has tried four times")
        proxy.reopen()
        wait_for(lambda: "The database answers again, after" in commands.log(process), "it goes on")
        lines = [line for line in commands.log(process).splitlines() if "trying again" in line]
        assert ["[WARN]" in line for line in lines] == [True, *[False] * (len(lines) - 1)], lines
        assert process.poll() is None
    finally:
        commands.end()
        proxy.close()
