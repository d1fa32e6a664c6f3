"""Helpers that run a real process in a test, wait for its output or for a condition, and end the process."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEADLINE = 60.0
"""How long a test waits before it fails, in seconds. The value is large because some machines are slow."""


def until(condition: Callable[[], bool], what: str, deadline: float = DEADLINE) -> None:
    """Wait until a condition is true.

    Raises:
        AssertionError: if the condition is not true in time. The message contains `what`.
    """
    end = time.monotonic() + deadline
    pause = threading.Event()
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"Waited {deadline:g} s in vain: {what}")
        pause.wait(0.02)


def exists(pid: int) -> bool:
    """Return whether a process runs. A zombie process does not count."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return not Path("/proc/self").exists()


def environment(folder: Path) -> dict[str, str]:
    """The variables of our site with a data folder of its own."""
    return {
        "DJANGO_SETTINGS_MODULE": "cronsite.settings",
        "ENV_FILE": "/nonexistent",
        "DATA_DIR": str(folder),
        "SECRET_KEY": "tests",
    }


def answers(address: str) -> bool:
    """Whether the address answers with status 200."""
    try:
        with urllib.request.urlopen(address) as response:  # noqa: S310 - an address of this test's server
            return bool(response.status == 200)
    except OSError:
        return False


def free_ports(number: int) -> list[int]:
    """Ports in a row that are free now. Another process could take one before the test uses it."""
    while True:
        with ExitStack() as stack:
            sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
            sockets[0].bind(("127.0.0.1", 0))
            first = sockets[0].getsockname()[1]
            try:
                for place, one in enumerate(sockets[1:], first + 1):
                    one.bind(("127.0.0.1", place))
            except (OSError, OverflowError):
                continue
            return list(range(first, first + number))


class Running:
    """A process in a new session. A thread reads the output of the process.

    Attributes:
        text: the output that was read so far.
    """

    def __init__(self, argv: Sequence[str], env: dict[str, str] | None = None, cwd: Path = ROOT) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **(env or {})}
        self.text = ""
        self._changed = threading.Condition()
        self.process = subprocess.Popen(
            list(argv),
            env=environment,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._collect, daemon=True)
        self._reader.start()

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_exc: object) -> None:
        if self.process.poll() is None:
            # At the first signal, a foreman asks its children to end. At the second signal, it asks again and waits for
            # a shorter time. At the third signal, it kills the children.
            for _ in range(3):
                self.send(signal.SIGTERM)
            try:
                self.process.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._reader.join(DEADLINE)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _collect(self) -> None:
        assert self.process.stdout is not None
        while data := os.read(self.process.stdout.fileno(), 65536):
            with self._changed:
                self.text += data.decode("utf-8", "replace")
                self._changed.notify_all()

    def wait_for(self, pattern: str, count: int = 1, deadline: float = DEADLINE) -> list[re.Match[str]]:
        """Wait until the output has `count` matches of a pattern, and return the matches."""

        def matches() -> list[re.Match[str]]:
            return list(re.finditer(pattern, self.text, re.MULTILINE))

        with self._changed:
            found = self._changed.wait_for(lambda: len(matches()) >= count, timeout=deadline)
        assert found, f"{pattern!r} was not seen {count} times in:\n{self.text}"
        return matches()

    def number(self, pattern: str, index: int = 0) -> int:
        """Wait until the output has `index + 1` matches. Return the first group of the match `index` as a number."""
        return int(self.wait_for(pattern, index + 1)[index].group(1))

    def send(self, number: signal.Signals) -> None:
        """Send a signal to this process, not to its children."""
        self.process.send_signal(number)

    def ended(self) -> int:
        """Wait until the process has ended and its output is read. Return its exit code."""
        code = self.process.wait(DEADLINE)
        self._reader.join(DEADLINE)
        return code


def up(data_dir: Path, *arguments: str, **env: str) -> Running:
    """Start `manage.py up` with additional environment variables."""
    environment = {
        "DATA_DIR": str(data_dir),
        "DJANGO_SETTINGS_MODULE": "cronsite.settings",
        "ENV_FILE": "/nonexistent",
        "SECRET_KEY": "",
        "DATABASE_URL": f"sqlite:///{data_dir / 'db.sqlite3'}",
        "CRON_DEMO": "",
        "CRON_GRACE_SECONDS": "1",  # so `up` does not wait for the long run of the demo
        **env,
    }
    return Running([sys.executable, str(ROOT / "manage.py"), "up", *arguments], environment)
