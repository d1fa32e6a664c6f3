"""A Django project that is not ours, in a folder of its own: its files, its commands and its processes."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
from pathlib import Path

from tests.hosts.package import run
from tests.support import wait_for

KEPT = {"PATH", "HOME", "LANG", "TMPDIR"}
"""What the commands inherit. PYTHONPATH is not among them, so that they see only what is installed."""


class Project:
    """A folder in which commands run.

    Args:
        command: the words before the name of a command, such as those of `manage.py`.
        environment: what the settings read.
    """

    def __init__(self, folder: Path, command: tuple[str, ...], **environment: str) -> None:
        self.folder, self.command = folder, command
        inherited = {name: value for name, value in os.environ.items() if name in KEPT}
        self.environment = {**inherited, "PYTHONUNBUFFERED": "1", **environment}
        self.started: list[subprocess.Popen[bytes]] = []
        folder.mkdir()

    def write(self, name: str, text: str) -> None:
        """Write a file of the project. Its folders become packages."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for folder in list(path.parents)[: len(Path(name).parts) - 1]:
            (folder / "__init__.py").touch()

    def settings(self, text: str) -> None:
        """Add lines to the end of the settings."""
        names = ("shop/settings.py", "shop/settings/base.py")  # wagtail has a folder
        path = next(self.folder / name for name in names if (self.folder / name).exists())
        path.write_text(f"{path.read_text()}\n{text}\n")

    def manage(self, *words: str, **environment: str) -> str:
        """Run a command to its end and return its output."""
        return run([*self.command, *words], self.folder, {**self.environment, **environment})

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a command that goes on. `log` has its output."""
        with (self.folder / f"process-{len(self.started)}.log").open("wb") as log:
            process = subprocess.Popen(
                [*self.command, *words],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.started.append(process)
        return process

    def log(self, process: subprocess.Popen[bytes]) -> str:
        """The output of a process until now."""
        return (self.folder / f"process-{self.started.index(process)}.log").read_text(errors="replace")

    def until(self, process: subprocess.Popen[bytes], words: str) -> str:
        """Wait until a process has written these words. Return its output."""
        wait_for(lambda: words in self.log(process) or process.poll() is not None, f"{words!r}\n{self.log(process)}")
        assert process.poll() is None, self.log(process)
        return self.log(process)

    def stop(self) -> list[int]:
        """Stop all processes as Ctrl-C does, and return the exit code of each."""
        for process in self.started:
            process.send_signal(signal.SIGINT)
        return [process.wait(90) for process in self.started]

    def kill(self) -> None:
        """Kill what still runs, with its children. pytest shows the ends of the logs if the test has failed."""
        for process in self.started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            logging.getLogger(__name__).warning("%s\n%s", process.args, self.log(process)[-6_000:])

    def errors(self) -> list[dict[str, str]]:
        """What the project's own handler for errors was called with, over all processes."""
        path = self.folder / "errors.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def new_project(folder: Path, python: Path, maker: tuple[str, ...] = ("django", "startproject")) -> Project:
    """Make a project called shop.

    Args:
        maker: a module, and the name of its command that makes a project.
    """
    made = Project(folder, (str(python), "manage.py"))
    run([str(python), "-m", *maker, "shop", "."], folder, made.environment)
    return made
