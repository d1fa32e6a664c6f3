"""The host of the database vanishes: no packet says that it is gone. `tests/cluster/trial.py` names the variables."""

from __future__ import annotations

import secrets
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.database_fleet import DatabaseFleet
from tests.cluster.servers import PostgreSQL, postgres_url
from tests.cluster.trial import DATABASE_FAULTS, doctor_names, goes_on, judge_strictly, say

pytestmark = DATABASE_FAULTS

PROMOTED_AFTER = 10.0


@pytest.fixture
def network() -> Iterator[tuple[str, str, str]]:
    """A network namespace with a link to this host: its name, its address, and its end of the link."""
    name, number = f"cron-{secrets.token_hex(3)}", secrets.randbelow(250)
    near, far, address = f"v{name[5:]}a", f"v{name[5:]}b", f"10.199.{number}"
    commands = [
        f"ip netns add {name}",
        f"ip link add {near} type veth peer name {far}",
        f"ip link set {far} netns {name}",
        f"ip address add {address}.1/24 dev {near}",
        f"ip link set {near} up",
        f"ip netns exec {name} ip address add {address}.2/24 dev {far}",
        f"ip netns exec {name} ip link set {far} up",
        f"ip netns exec {name} ip link set lo up",
    ]
    try:
        for command in commands:
            if subprocess.run(command.split(), capture_output=True, check=False).returncode:
                pytest.skip(f"a network of its own cannot be made here: {command}")
        yield name, f"{address}.2", far
    finally:
        subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
        subprocess.run(["ip", "link", "delete", near], capture_output=True, check=False)


def test_the_host_of_the_primary_vanishes(
    start: Callable[..., DatabaseFleet], place: Path, network: tuple[str, str, str]
) -> None:
    """No packet says that it is gone. The standby is promoted 10 s later."""
    name, address, link = network
    primary, standby = PostgreSQL(place / "far", address, name), PostgreSQL(place / "near")
    primary.create()
    try:
        standby.standby_of(primary)
        primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.execute("ALTER SYSTEM SET synchronous_commit = 'remote_apply'", "SELECT pg_reload_conf()")
        fleet = start(postgres_url(primary, standby), standby.rows)
        fleet.steady(6)
        subprocess.run(["ip", "netns", "exec", name, "ip", "link", "set", link, "down"], check=True)
        gone = time.time()
        doctor_names(fleet, "does not answer")
        time.sleep(max(0.0, gone + PROMOTED_AFTER - time.time()))
        standby.promote()
        promoted = time.time()
        say(f"vanished: promoted {promoted - gone:.1f} s after the loss")
        goes_on(fleet, "vanished", promoted)
        fleet.steady(6)
        judge_strictly(fleet, "vanished")
    finally:
        standby.stop()
        primary.stop()
