"""`manage.py import_crontab`: which lines become schedules of `run_command`, and what is told of the others."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.core.management import load_command_class
from django.test import override_settings

from scheduling.management.moving import machine_zone
from scheduling.models import Scheduler
from tests.moving.calls import imported

CRONTAB = """\
MAILTO=ops@example.org
PATH=/usr/bin
*/5 * * * * cd /srv/site && python manage.py cleanup_executions --days 30 >> /dev/null 2>&1
@hourly python manage.py clearsessions
@hourly python manage.py clearsessions
CRON_TZ=Europe/Madrid
30 2 * * * python manage.py clearsessions
@reboot python manage.py clearsessions
0 8 * * * python manage.py clearsessions %input
0 8 * * * python manage.py flush --no-input
0 8 31 2 * python manage.py clearsessions
0 8 * * * python manage.py cleanup_executions --dys 3
0 8 * * * tar cf /backup/a.tar /srv
0 8 * * * cd /srv/other && python manage.py clearsessions
0 8 * * * DJANGO_SETTINGS_MODULE=other.settings django-admin clearsessions
0 8 * *
HOME=/srv/home
0 9 * * * python manage.py clearsessions
HOME=/srv/site
DJANGO_SETTINGS_MODULE=third.settings
0 9 * * * python manage.py clearsessions
"""


@pytest.fixture
def crontab(tmp_path: Path, root: Any) -> Path:
    """The file."""
    file = tmp_path / "crontab"
    file.write_text(CRONTAB)
    return file


def given(file: Path, *options: str) -> Any:
    return imported("import_crontab", file, "--timezone", "America/New_York", "--project", "/srv/site", *options)


def ours() -> list[Scheduler]:
    return list(Scheduler.objects.filter(name__startswith="crontab-").order_by("pk"))


def test_commands_become_schedules_and_the_other_lines_are_listed(crontab: Path) -> None:
    ended = given(crontab)
    assert ended.code == 1  # lines are listed
    rows = {(row.schedule, row.timezone, *row.params["args"]): row for row in ours()}
    assert len(ours()) == 4
    assert set(rows) == {
        ("*/5 * * * *", "America/New_York", "--days", "30"),
        ("@hourly", "America/New_York"),
        ("30 2 * * *", "Europe/Madrid"),
    }
    row = rows["30 2 * * *", "Europe/Madrid"]
    assert row.worker is not None
    assert (row.worker.name, row.params["command"], row.status) == ("run_command", "clearsessions", True)
    assert row.description == "From a crontab: 30 2 * * * python manage.py clearsessions"
    assert "Made: 4. There already: 0. Cannot be converted: 11." in ended.out
    for line, reason in {
        8: "@reboot has no time", 9: "standard input", 10: "'flush' may not be run from here. Allowed: ",
        11: "no date ever matches", 12: "does not take these arguments", 13: "It runs “tar”",
        14: "give --project /srv/other", 15: "It runs with the settings other.settings",
        16: "There are not five fields", 18: "give --project /srv/home", 21: "the settings third.settings",
    }.items():  # fmt: skip
        assert reason in ended.out.partition(f"line {line}:")[2].partition("line ")[0], line
    assert "line 1: MAILTO=ops@example.org. Mails are sent by alert rules" in ended.out
    assert "line 2: PATH=/usr/bin. Commands have the environment of the consumers" in ended.out
    assert "line 4: It names neither a folder nor settings" in ended.out
    assert "line 3: Its output went to a file" in ended.out


def test_the_reasons_name_the_way_out(tmp_path: Path, root: Any) -> None:
    file = tmp_path / "crontab"
    file.write_text(
        "0 6 * * * root cd /srv/site && python manage.py clearsessions\n"
        "0 6 * * * www-data python manage.py clearsessions\n"
        "0 6 * * * cd /srv/site && source .venv/bin/activate && python manage.py clearsessions\n"
        "0 6 * * * . /srv/venv/bin/activate; python manage.py clearsessions\n"
        "0 6 * * * uv run manage.py clearsessions\n"
        "0 6 * * * cd /srv/site && poetry run python manage.py clearsessions\n"
        "0 6 * * * nohup python manage.py clearsessions\n"
        "0 6 * * * sudo python manage.py clearsessions\n"
        "0 6 * * * root tar cf /backup/a.tar /srv\n"
    )
    items = given(file, "--dry-run", "--json").json["items"]
    wanted = [
        "the user “root” before its command, as in /etc/crontab: give --system", "the user “www-data”",
        "activates a virtual environment", "take it out of the line", "“uv run”", "“poetry run”", "“nohup”",
        "start the consumers as this user", "It runs “root”",
    ]  # fmt: skip
    assert [item["listed"] for item in items] == [True] * 9
    assert [(words, item["why"]) for words, item in zip(wanted, items, strict=True) if words not in item["why"]] == []
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:2]))
    assert given(file, "--dry-run", "--system", "--json").json["made"] == 2


def test_the_notes_about_variables(tmp_path: Path, root: Any) -> None:
    file = tmp_path / "crontab"
    file.write_text(
        'SECRET_TOKEN=abc123\nLC_ALL=C.UTF-8\nMAILTO=""\nCRON_TZ=Europe/Madrid\n'
        "0 6 * * * cd /srv/site && python manage.py clearsessions\n"
    )
    for ended in (given(file, "--dry-run"), given(file, "--dry-run", "--json")):
        assert "abc123" not in ended.out
        assert "line 1: SECRET_TOKEN=…. Commands have the environment of the consumers" in ended.out
        assert "line 2: LC_ALL=C.UTF-8. Commands" in ended.out
        assert "line 3: MAILTO is empty, so cron mails nothing" in ended.out
        assert "make one for failed runs" not in ended.out
        assert "line 4: CRON_TZ=Europe/Madrid. The times of the lines after it are read in this zone" in ended.out
        assert "lines without a CRON_TZ before them are read in the zone America/New_York" in ended.out


def test_the_second_import_changes_nothing_wherever_the_lines_stand(crontab: Path) -> None:
    given(crontab)
    before = list(Scheduler.objects.order_by("pk").values())
    crontab.write_text("# moved\n" + "\n".join(reversed(CRONTAB.splitlines()[:5])) + "\n")
    ended = given(crontab)
    assert ended.code == 0
    assert "Made: 0. There already: 3. Cannot be converted: 0." in ended.out
    assert list(Scheduler.objects.order_by("pk").values()) == before


def test_a_dry_run_tells_the_next_runs_and_changes_nothing(crontab: Path) -> None:
    ended = given(crontab, "--dry-run", "--json")
    assert (ended.code, ended.json["kind"], ended.json["made"], ours()) == (1, "import_plan", 4, [])
    lines = {item["label"]: item for item in ended.json["items"]}
    assert len(lines["line 3"]["schedules"][0]["next_runs"]) == 3
    assert lines["line 8"]["schedules"] == []
    text = given(crontab, "--dry-run").out
    assert "30 2 * * * Europe/Madrid → run_command" in text
    assert "To make: 4. There already: 0. Cannot be converted: 11. Nothing was changed." in text


def test_schedules_are_made_paused(crontab: Path) -> None:
    given(crontab, "--paused")
    assert {(row.status, row.pause_reason) for row in ours()} == {
        (False, "Imported from a crontab, and not switched over yet.")
    }


def test_a_schedule_that_was_edited_stays_and_is_told(crontab: Path) -> None:
    given(crontab)
    row = ours()[0]
    row.schedule = "0 3 * * *"
    row.save()
    ended = given(crontab)
    assert "differs in: schedule. It stays as it is" in ended.out
    assert Scheduler.objects.get(pk=row.pk).schedule == "0 3 * * *"


def test_the_user_of_a_system_crontab_is_told(tmp_path: Path, root: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.BytesIO(b"0 1 * * *\twww-data\tpython manage.py clearsessions\nTZ=Asia/Tokyo\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(text))
    ended = imported("import_crontab", "-", "--system", "--timezone", "UTC")
    assert ended.code == 0
    assert "It ran as the user www-data. Here it runs as the user of the consumers." in ended.out
    assert "TZ=Asia/Tokyo. It is the zone of the commands" in ended.out
    assert "www-data" in ours()[0].description


@override_settings(CRON_COMMANDS=("flush",))
def test_the_setting_says_which_commands_may_be_named(crontab: Path) -> None:
    assert "may not be run from here" not in given(crontab).out
    assert ["flush", "--no-input"] in [[row.params["command"], *row.params["args"]] for row in ours()]


def test_the_zone_is_that_of_the_machine_or_is_asked_for(
    crontab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_zone, "LOCALTIME", tmp_path / "none")
    monkeypatch.setattr(machine_zone, "TIMEZONE", tmp_path / "timezone")
    refused = imported("import_crontab", crontab)
    assert (refused.code, ours()) == (4, [])
    assert "This machine does not tell its time zone" in refused.err
    (tmp_path / "timezone").write_text("Asia/Tokyo\n")
    assert "are read in the zone Asia/Tokyo." in imported("import_crontab", crontab).out
    assert "Asia/Tokyo" in {row.timezone for row in ours()}
    assert imported("import_crontab", crontab, "--timezone", "Mars/Base").code == 4


def test_a_file_that_cannot_be_read_and_a_user_without_permission(crontab: Path, django_user_model: Any) -> None:
    assert given(crontab.parent / "none").code == 4
    big = crontab.parent / "big"
    big.write_bytes(b"#" * 1_000_001)
    assert "which is no crontab" in given(big).err
    bob = django_user_model.objects.create_user("bob", "bob@example.org", "x", is_staff=True)
    assert given(crontab, "--as", "bob").code == 4
    assert ours() == []
    bob.user_permissions.set(Permission.objects.filter(codename="add_scheduler"))
    given(crontab, "--as", "bob")
    assert {row.user for row in ours()} <= {bob}


@pytest.mark.parametrize("command", ["import_crontab", "import_celery_beat"])
def test_each_option_has_a_help_text(command: str) -> None:
    parser = load_command_class("scheduling", command).create_parser("manage.py", command)
    own = [action for action in parser._actions if action.dest != "help"]
    assert {"dry_run", "paused", "as_user", "json"} <= {action.dest for action in own}
    assert [action.dest for action in own if not action.help] == []
    assert "list" in parser.format_help()
