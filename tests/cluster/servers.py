"""Database servers that belong to one test: a PostgreSQL with its standby, and a MariaDB."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support import wait_for

QUERY = "SELECT id, state, attempt, params FROM scheduling_schedulerexecution"


def free_port() -> int:
    """A port that is free now. No client gets it by chance: a client of an ended server could connect to itself."""
    while True:
        number = 20_000 + secrets.randbelow(10_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", number))
            return number


def as_user(name: str) -> list[str]:
    """The beginning of a command that runs as another user, because servers refuse to run as root."""
    return ["runuser", "-u", name, "--"] if os.geteuid() == 0 else []


def _owned(folder: Path, name: str) -> Path:
    folder.mkdir()
    if os.geteuid() == 0:
        shutil.chown(folder, name)
    return folder


def descendants(pid: int) -> list[int]:
    """A process and all its descendants."""
    found = [pid]
    for number in found:
        with suppress(OSError):
            found += map(int, Path(f"/proc/{number}/task/{number}/children").read_text().split())
    return found


class PostgreSQL:
    """A server of its own. `network` is the name of a network namespace in which it runs, if any."""

    def __init__(self, folder: Path, host: str = "127.0.0.1", network: str = "") -> None:
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
        if not programs:
            pytest.skip("PostgreSQL is not installed (Debian's package postgresql)")
        self._bin, self.folder, self.host, self.port = programs[-1], folder, host, free_port()
        self._before = (["ip", "netns", "exec", network] if network else []) + as_user("postgres")

    def _run(self, program: str, *arguments: object) -> None:
        command = [*self._before, str(self._bin / program), *map(str, arguments)]
        # A started server would keep a pipe open, so the output goes to a file.
        with (self.folder / "programs.log").open("ab") as log:
            done = subprocess.run(command, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False)
        assert done.returncode == 0, (self.folder / "programs.log").read_text()

    def create(self) -> None:
        """Make an empty server and start it, with the database `cron`."""
        _owned(self.folder, "postgres")
        self._run("initdb", "-D", self.folder / "data", "-A", "trust", "-U", "postgres", "-N")
        with (self.folder / "data" / "pg_hba.conf").open("a") as file:
            file.write("host all all 0.0.0.0/0 trust\nhost replication all 0.0.0.0/0 trust\n")
        self.start()
        self.execute("CREATE DATABASE cron", database="postgres")

    def standby_of(self, primary: PostgreSQL) -> None:
        """Become a standby of the primary, and start."""
        _owned(self.folder, "postgres")
        self._run(
            "pg_basebackup", "-h", primary.host, "-p", primary.port, "-U", "postgres", "-D", self.folder / "data",
            "-R", "-X", "stream", "-c", "fast",
        )  # fmt: skip
        self.start()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=* -c fsync=off -c wal_keep_size=1GB"
        self._run("pg_ctl", "-D", self.folder / "data", "-l", self.folder / "log", "-w", "-o", options, "start")

    def promote(self) -> None:
        """Become the primary."""
        self._run("pg_ctl", "-D", self.folder / "data", "-w", "promote")

    def stop(self) -> None:
        """Stop the server as an operator does."""
        with suppress(AssertionError):
            self._run("pg_ctl", "-D", self.folder / "data", "-m", "fast", "-w", "stop")

    def send(self, number: int) -> None:
        """Send a signal to all processes of the server."""
        pid = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        for process in reversed(descendants(pid)) if number == signal.SIGCONT else descendants(pid):
            with suppress(ProcessLookupError):
                os.kill(process, number)

    def connect(self, database: str = "cron") -> Any:
        """A connection of the test's own."""
        import psycopg

        return psycopg.connect(
            host=self.host, port=self.port, user="postgres", dbname=database, autocommit=True, connect_timeout=5
        )

    def execute(self, *statements: str, database: str = "cron") -> None:
        """Execute statements, each in a transaction of its own."""
        with closing(self.connect(database)) as connection:
            for statement in statements:
                connection.execute(statement)

    def rows(self) -> list[Any]:
        """All executions."""
        with closing(self.connect()) as connection:
            return list(connection.execute(QUERY).fetchall())


def postgres_url(*servers: PostgreSQL) -> str:
    """The DATABASE_URL of one server, or of a primary and its standby."""
    hosts = ",".join(f"{server.host}:{server.port}" for server in servers)
    return f"postgres://postgres@{hosts}/cron" + ("?target_session_attrs=read-write" if len(servers) > 1 else "")


class MariaDB:
    """A server of its own. The user `cron` has no privilege that ignores `read_only`."""

    def __init__(self, folder: Path) -> None:
        self._program = shutil.which("mariadbd", path=f"{os.environ['PATH']}:/usr/sbin")
        if self._program is None:
            pytest.skip("MariaDB is not installed (Debian's package mariadb-server)")
        self.folder, self.port = folder, free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def create(self) -> None:
        """Make an empty server and start it, with the database `cron`."""
        _owned(self.folder, "mysql")
        subprocess.run(
            [*as_user("mysql"), "mariadb-install-db", "--no-defaults", f"--datadir={self.folder / 'data'}",
             "--auth-root-authentication-method=normal", "--skip-test-db"],
            check=True, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.start()
        self.execute(
            "CREATE DATABASE cron CHARACTER SET utf8mb4",
            "CREATE USER cron@'%' IDENTIFIED BY 'x'",
            "GRANT ALL ON cron.* TO cron@'%'",
            "CREATE USER admin@'%' IDENTIFIED BY 'x'",
            "GRANT ALL ON *.* TO admin@'%'",
        )

    def start(self) -> None:
        """Start the server and wait until it answers."""
        assert self._program is not None
        command = [
            *as_user("mysql"), self._program, "--no-defaults", f"--datadir={self.folder / 'data'}",
            f"--port={self.port}", "--bind-address=127.0.0.1", f"--socket={self.folder / 'socket'}",
            f"--pid-file={self.folder / 'pid'}", "--innodb-flush-log-at-trx-commit=2", "--skip-log-bin",
        ]  # fmt: skip
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_for(self._answers, "MariaDB answers")

    def _answers(self) -> bool:
        try:
            self.execute("SELECT 1")
        except Exception:
            return False
        return True

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End the server."""
        assert self._process is not None
        pid = int((self.folder / "pid").read_text())
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        self._process.wait(60)

    def connect(self) -> Any:
        """A connection of the test's own."""
        import MySQLdb

        return MySQLdb.connect(unix_socket=str(self.folder / "socket"), user="root", db="", autocommit=True)

    def execute(self, *statements: str) -> list[Any]:
        """Execute statements; returns the rows of the last one."""
        with closing(self.connect()) as connection:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def rows(self) -> list[Any]:
        """All executions."""
        found = self.execute("USE cron", QUERY)
        return [(pk, state, attempt, json.loads(params)) for pk, state, attempt, params in found]


def mysql_url(server: MariaDB) -> str:
    """The DATABASE_URL of a server."""
    return f"mysql://cron:x@127.0.0.1:{server.port}/cron"
