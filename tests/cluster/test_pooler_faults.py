"""pgbouncer in transaction mode is restarted. `tests/cluster/trial.py` names the variables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.cluster.database_fleet import DatabaseFleet
from tests.cluster.servers import PostgreSQL, free_port
from tests.cluster.trial import DATABASE_FAULTS, judge_strictly, trial
from tests.contract.pooler import Pooler, pgbouncer

pytestmark = DATABASE_FAULTS


def test_pgbouncer_is_restarted(start: Callable[..., DatabaseFleet], primary: PostgreSQL, place: Path) -> None:
    folder = place / "pgbouncer"
    folder.mkdir()
    pooler = Pooler(pgbouncer(), folder, free_port(), f"host=127.0.0.1 port={primary.port} user=postgres")
    pooler.start()
    try:
        url = f"postgres://postgres@127.0.0.1:{pooler.port}/cron"
        fleet = start(url, primary.rows, DISABLE_SERVER_SIDE_CURSORS="true")
        trial(fleet, "pgbouncer away", pooler.stop, pooler.start, "does not answer")
        judge_strictly(fleet, "pgbouncer away")
    finally:
        pooler.stop()
