"""Options of the commands for a project that runs its own web server, and for its developers."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests.guest.project import WORKERS, GuestProject, end
from tests.support import wait_for

pytestmark = [pytest.mark.processes, pytest.mark.any_database]

RUN = 'from scheduling.api import run\nprint("id", run("sync").id)'
STATE = "from scheduling.models import Output, SchedulerExecution as E\nprint(E.objects.get(pk={pk}).state)\n"
OUTPUT = """
from scheduling.models import Output
print("|".join(Output.objects.order_by("execution_id").values_list("text", flat=True)))
"""


def run_sync(project: GuestProject) -> None:
    """Run the worker `sync`, and wait for its end."""
    pk = project.python(RUN).split()[-1]
    wait_for(lambda: "succeeded" in project.python(STATE.format(pk=pk)), "the run succeeds")


@pytest.mark.parametrize("command", ["run_worker", "run_scheduler"])
def test_reload_starts_the_same_process_with_the_new_code(guest: Callable[..., GuestProject], command: str) -> None:
    project = guest('MEDIA_ROOT = BASE_DIR / "media"').migrated()
    process = project.start(command, "--reload")
    log = project.folder / "log.txt"
    try:
        wait_for(lambda: " ready" in log.read_text(), "the first start")
        if command == "run_worker":
            run_sync(project)
        before = log.read_text().count(" ready")
        project.write("shop/workers.py", WORKERS.replace("syncing", "new code syncs"))
        wait_for(lambda: log.read_text().count(" ready") > before, "the second start")
        assert process.poll() is None
        os.kill(process.pid, 0)
        assert "The code has changed; starting again" in log.read_text()
        if command == "run_worker":
            run_sync(project)
            text = project.python(OUTPUT)
            assert text.index("syncing eu") < text.index("new code syncs eu")
    finally:
        code = end(process)
    assert code == 0, log.read_text()


def test_up_without_a_web_server(guest: Callable[..., GuestProject]) -> None:
    project = guest('MEDIA_ROOT = BASE_DIR / "media"')
    process = project.start("up", "--no-web")
    log = project.folder / "log.txt"
    try:
        wait_for(lambda: "Everything is running, without a web server." in log.read_text(), "the start")
        assert "Starting producer, consumer." in log.read_text()
        assert "http://" not in log.read_text()
        assert "(shown only now: keep it)" in log.read_text()
        run_sync(project)
    finally:
        code = end(process)
    assert code == 0, log.read_text()


def test_verbosity_zero_prints_no_result(guest: Callable[..., GuestProject]) -> None:
    project = guest('MEDIA_ROOT = BASE_DIR / "media"').migrated()
    for command in ("cleanup_executions", "evaluate_alerts", "make_groups"):
        assert project.run(command, "-v", "0").stdout == ""
        assert project.run(command).stdout != ""
