"""The tests run `up` with real processes in an empty folder, as a new user does."""

from __future__ import annotations

import http.cookiejar
import os
import re
import signal
import socket
import sqlite3
import stat
import urllib.parse
import urllib.request
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.management.running import exists, free_ports, until, up

pytestmark = pytest.mark.processes


def sign_in(address: str, user: str, password: str) -> str:
    """Sign in and return the page that follows the login form."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
    with opener.open(address) as response:
        page = response.read().decode()
        login = response.url
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert token is not None
    form = {"csrfmiddlewaretoken": token.group(1), "username": user, "password": password}
    with opener.open(login, urllib.parse.urlencode(form).encode()) as response:
        return str(response.read().decode())


def open_to_others(folder: Path) -> list[str]:
    """Search a folder and its content. Return the paths that other users can read, write or execute."""
    return [str(path) for path in (folder, *folder.rglob("*")) if path.stat().st_mode & 0o077]


def states(data_dir: Path) -> dict[str, tuple[str, int]]:
    """Return the state and attempt number of each manual execution, by the name of its worker."""
    with closing(sqlite3.connect(data_dir / "db.sqlite3")) as database:
        rows = database.execute(
            "select target_name, state, attempt from scheduling_schedulerexecution where trigger = 'manual'"
        )
        return {name: (state, attempt) for name, state, attempt in rows}


def test_the_first_start_and_the_second(tmp_path: Path, free_port: int) -> None:
    data_dir = tmp_path / "data"
    with up(data_dir, "--port", str(free_port)) as running:
        address = running.wait_for(r"Open +(http://\S+)$")[0].group(1)
        password = running.wait_for(r"Password +(\S+) +\(shown only now")[0].group(1)
        running.wait_for("Ctrl-C stops everything")
        assert address == f"http://127.0.0.1:{free_port}/admin/"
        assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700
        # The file -wal exists while a process has the database open.
        files = {"secret.key", "db.sqlite3", "db.sqlite3-wal"}
        until(lambda: files <= {path.name for path in data_dir.iterdir()}, "the files are there")
        assert open_to_others(data_dir) == []
        assert "Log out" in sign_in(address, "admin", password)
        with urllib.request.urlopen(f"http://127.0.0.1:{free_port}/static/admin/css/base.css") as response:
            assert response.headers["Content-Type"].startswith("text/css")

        until(lambda: states(data_dir).get("demo.greet") == ("succeeded", 1), "a run succeeds")
        until(lambda: states(data_dir).get("demo.flaky") == ("succeeded", 3), "a run succeeds at its third attempt")
        until(lambda: states(data_dir).get("demo.broken") == ("failed", 3), "a run fails for good")
        running.send(signal.SIGINT)
        assert running.ended() == 0
        assert running.text.count(password) == 1
        assert "may take up to 6 s to finish" in running.text
        assert open_to_others(data_dir) == []
        for name in ("web", "producer", "consumer"):
            assert f"{name} stopped." in running.text

    with socket.create_server(("127.0.0.1", free_port)), up(data_dir, "--port", str(free_port)) as running:
        chosen = running.number(rf"^Port {free_port} is taken, using (\d+)\.$")
        running.wait_for(rf"Open +http://127\.0\.0\.1:{chosen}/admin/$")
        running.wait_for("Ctrl-C stops everything")
        assert "Password  was shown once, at the first start." in running.text
        assert "manage.py changepassword admin" in running.text
        assert "migrations applied" not in running.text
        running.send(signal.SIGTERM)
        assert running.ended() == 0


def serves_own_metrics(port: int) -> bool:
    """Return whether a producer or consumer serves its figures on this port."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as response:
            return "app_schedule_process_turns_total" in response.read().decode()
    except OSError:
        return False


def test_without_the_demo_its_schedules_are_paused(tmp_path: Path, free_port: int) -> None:
    with up(tmp_path, "--port", str(free_port)) as running:
        running.wait_for("Ctrl-C stops everything")
        running.send(signal.SIGINT)
        running.ended()
    own = free_ports(4)
    several = ("--consumers=2", "--producers=2", f"--metrics-port={own[0]}")
    with up(tmp_path, "--port", str(free_port), "--no-demo", *several) as running:
        running.wait_for(r"^Paused [45] demo schedules\.$")
        running.wait_for(r"Starting web, producer\.1, producer\.2, consumer\.1, consumer\.2\.$")
        running.wait_for("Ctrl-C stops everything")
        until(lambda: all(map(serves_own_metrics, own)), "each producer and consumer serves its metrics")
        with closing(sqlite3.connect(tmp_path / "db.sqlite3")) as database:
            active = "select count(*) from scheduling_scheduler where status and description like 'Demo:%'"
            assert database.execute(active).fetchone() == (0,)
        running.send(signal.SIGINT)
        assert running.ended() == 0


def test_a_web_server_that_is_killed_comes_back_on_its_port(tmp_path: Path, free_port: int) -> None:
    with up(tmp_path, "--port", str(free_port), "--no-demo", "--grace=0") as running:
        running.wait_for("Ctrl-C stops everything")
        web = web_process(running.process.pid)
        os.kill(web, signal.SIGKILL)
        running.wait_for("web was killed by SIGKILL; starting it again")

        def answers() -> bool:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{free_port}/admin/login/") as response:
                    return response.status == 200
            except OSError:
                return False

        until(answers, "the site answers again")
        assert not exists(web)
        running.send(signal.SIGINT)
        assert running.ended() == 0
        assert "may take up to 5 s to finish" in running.text


def web_process(parent: int) -> int:
    """Return the id of the `run_web` process that the process `parent` has started."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            own_parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if own_parent == parent and b"run_web" in (entry / "cmdline").read_bytes():
                return int(entry.name)
        except OSError:
            continue
    pytest.skip("processes cannot be looked up here (no /proc)")


@pytest.mark.parametrize(
    ("arguments", "env", "sentence"),
    [
        (["--port", "0"], {}, "0 is not a whole number from 1 to 65535"),
        (["--consumers", "none"], {}, "none is not a whole number from 1 to 256"),
        (["--grace", "nan"], {}, "nan is not a whole number from 0 to 86400"),
        (["--host", "192.0.2.1"], {}, r"Cannot listen on 192.0.2.1:8000: .* Choose another --host or --port\."),
        ([], {"DATABASE_URL": "sqlite:////proc/db.sqlite3"}, "The database cannot be used: .*DATABASE_URL"),
        ([], {"DATABASE_URL": "sqlite:////nonexistent/db.sqlite3"}, "The folder /nonexistent .* does not exist"),
        ([], {"CRON_MAX_RETRIES": "99"}, "CRON_MAX_RETRIES is 99; it must be from 0 to 19"),
    ],
)
def test_invalid_arguments_and_settings_are_refused(
    tmp_path: Path, arguments: list[str], env: dict[str, str], sentence: str
) -> None:
    with up(tmp_path, *arguments, **env) as running:
        assert running.ended() != 0
        assert re.search(sentence, running.text), running.text
        assert "Traceback" not in running.text
        assert "Starting" not in running.text


def test_a_data_folder_that_cannot_be_made_has_an_error_message(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    with up(in_the_way / "data") as running:
        assert running.ended() == 1
        assert "Set DATA_DIR to a folder you may write to." in running.text


SERVICE = """
insert into scheduling_scheduler
    (date_time, description, stay_alive, params, worker_id, schedule, timezone, created_at, updated_at)
select ?, 'service', 1, json_object('directory', ?), id, '', '', '2026-01-01', '2026-01-01'
from scheduling_worker where name = 'tests.serve'
"""


def test_a_standalone_consumer_runs_while_there_is_a_service(tmp_path: Path, free_port: int) -> None:
    with up(tmp_path, "--port", str(free_port), "--no-demo", EXTRA_APPS="tests.apps.sample") as running:
        running.wait_for("Ctrl-C stops everything")
        assert "services | " not in running.text
        soon = (datetime.now(UTC) + timedelta(seconds=2)).replace(tzinfo=None).isoformat(" ")
        with closing(sqlite3.connect(tmp_path / "db.sqlite3", timeout=30)) as database, database:
            database.execute(SERVICE, (soon, str(tmp_path)))
        running.wait_for(r"services \| .*Consumer ready")
        marks = tmp_path / "service.txt"
        until(lambda: marks.exists() and marks.read_text().startswith("start"), "the service runs")
        with closing(sqlite3.connect(tmp_path / "db.sqlite3", timeout=30)) as database, database:
            database.execute("update scheduling_schedulerexecution set cancel_requested_by = 'ann'")
        running.wait_for("services is not needed any more")
        running.wait_for("services stopped")
        running.send(signal.SIGINT)
        assert running.ended() == 0
    assert marks.read_text().count("start") == 1
