"""Starts pgbouncer in transaction mode, in front of the PostgreSQL of the test database."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connection

from tests.support import wait_for


def pgbouncer() -> str:
    """Return the path of pgbouncer. Without it, skip the test; fail it in CI."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("pgbouncer is not installed")
        pytest.skip("pgbouncer is not installed (Debian's package pgbouncer)")
    return program


class Pooler:
    """A pgbouncer of its own. The four sessions of the server are shared by all clients.

    Args:
        folder: must be readable by other users.
        server: where PostgreSQL is, in pgbouncer's words.
    """

    def __init__(self, program: str, folder: Path, port: int, server: str) -> None:
        self.program, self.folder, self.port = program, folder, port
        self._ini = folder / "pgbouncer.ini"
        self._ini.write_text(
            f"[databases]\n* = {server}\n\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
            f"unix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 4\n"
            f"logfile = {folder}/pgbouncer.log\npidfile = {folder}/pgbouncer.pid\nidle_transaction_timeout = 15\n"
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start pgbouncer and wait until it listens."""
        arguments = [self.program, str(self._ini)]
        if os.geteuid() == 0:  # pgbouncer refuses to run as root
            self.folder.chmod(0o777)
            arguments[1:1] = ["-u", "postgres"]
        self._process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: "listening on" in self._log() or not self._running(), "pgbouncer listens")
        assert self._running(), self._log()

    def stop(self) -> None:
        """End pgbouncer and all connections through it."""
        if self._process is not None and self._running():
            self._process.terminate()
            self._process.wait(30)
        (self.folder / "pgbouncer.log").unlink(missing_ok=True)

    def url(self) -> str:
        """The URL of the test database through pgbouncer."""
        return f"postgres://{connection.settings_dict['USER']}@127.0.0.1:{self.port}/{connection.settings_dict['NAME']}"

    def _running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _log(self) -> str:
        log = self.folder / "pgbouncer.log"
        return log.read_text(errors="replace") if log.exists() else ""


@contextmanager
def pooler(folder: Path, port: int) -> Iterator[Pooler]:
    """Provide a running pgbouncer in front of the test database; skip the test if that is no PostgreSQL."""
    if connection.vendor != "postgresql":
        pytest.skip("pgbouncer is a pooler for PostgreSQL")
    config = connection.settings_dict
    login = f"user={config['USER']}" + (f" password={config['PASSWORD']}" if config["PASSWORD"] else "")
    started = Pooler(
        pgbouncer(), folder, port, f"host={config['HOST'] or '127.0.0.1'} port={config['PORT'] or 5432} {login}"
    )
    try:
        started.start()
        yield started
    finally:
        started.stop()
