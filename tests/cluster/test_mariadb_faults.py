"""A MariaDB that restarts, is read-only or ends connections. `tests/cluster/trial.py` names the variables."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.cluster.database_fleet import DatabaseFleet
from tests.cluster.servers import MariaDB, mysql_url
from tests.cluster.trial import DATABASE_FAULTS, goes_on, judge_strictly, trial

pytestmark = DATABASE_FAULTS

Start = Callable[..., DatabaseFleet]


def test_mariadb_is_restarted(start: Start, mariadb: MariaDB) -> None:
    fleet = start(mysql_url(mariadb), mariadb.rows)
    trial(fleet, "MariaDB away", mariadb.stop, mariadb.start, "does not answer")
    judge_strictly(fleet, "MariaDB away")


def test_mariadb_is_read_only(start: Start, mariadb: MariaDB) -> None:
    fleet = start(mysql_url(mariadb), mariadb.rows)

    def switch(value: int) -> None:
        mariadb.execute(f"SET GLOBAL read_only = {value}")

    trial(fleet, "MariaDB read-only", lambda: switch(1), lambda: switch(0), "read-only")
    judge_strictly(fleet, "MariaDB read-only")


def test_mariadb_ends_all_connections(start: Start, mariadb: MariaDB) -> None:
    fleet = start(mysql_url(mariadb), mariadb.rows)
    for _time in range(5):
        fleet.steady(4)
        found = mariadb.execute("SELECT id FROM information_schema.processlist WHERE user = 'cron'")
        assert found
        for (pk,) in found:
            try:
                mariadb.execute(f"KILL {pk}")
            except Exception as error:  # it has ended by itself
                assert "Unknown thread" in str(error)  # noqa: PT017
        goes_on(fleet, "connections ended", time.time())
    judge_strictly(fleet, "connections ended")
