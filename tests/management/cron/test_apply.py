"""`cron export` and `cron apply`: files, exit codes and what is printed."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from scheduling.core import yaml_documents
from scheduling.models import Scheduler
from tests.factories import SchedulerFactory, UserFactory
from tests.management.cron import calls

pytestmark = pytest.mark.django_db

YEARLY = "0 0 1 1 *"
EDITOR = [f"scheduling.{verb}_scheduler" for verb in ("view", "add", "change")]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    UserFactory(username="root", superuser=True)
    monkeypatch.setenv("CRON_AS", "root")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cron(*arguments: str) -> tuple[int, str, str]:
    """The exit code, stdout and stderr of the command."""
    ended = calls.cron(*arguments)
    return ended.code, ended.out, ended.err


def given(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def write(name: str, *entries: dict[str, Any]) -> None:
    Path(name).write_text(json.dumps({"version": 1, "schedules": entries}))


A: dict[str, Any] = {"name": "a", "schedule": YEARLY, "worker": "tests.noop"}


def test_an_export_is_applied_to_an_empty_database() -> None:
    SchedulerFactory(name="a", schedule=YEARLY, description="Invoices", time_limit=5)
    SchedulerFactory(name="@worker:tests.noop")
    for file in ("jobs.json", "jobs.yaml"):
        code, out, err = cron("export", file)
        assert (code, out) == (0, f"Schedules in {file}: 1.\n")
        assert "@worker:tests.noop is left out" in err
        Scheduler.objects.filter(name="a").delete()
        assert cron("apply", file, "--check")[0] == 1
        assert not Scheduler.objects.filter(name="a").exists()
        code, out, _err = cron("apply", file)
        assert code == 0
        assert out.startswith("+ make a\n    name: a\n    description: Invoices\n")
        assert out.endswith("Made: 1. Changed: 0. Deleted: 0. Unchanged: 0.\n")
        assert cron("apply", file, "--check") == (0, "The schedules are as the file says: 1.\n", "")
        assert cron("export", file)[::2] == (4, f"The file {file} exists. To replace it, add --force.\n")
        assert cron("export", file, "--force")[0] == 0
        assert cron("export", "-", "--source", file)[1] == cron("export", "--schedule", "a")[1]
    assert cron("export", "--schedule", "nowhere")[0] == 3
    assert cron("export", "--source", "other")[1].split() == ["{", '"version":', "1,", '"schedules":', "[]", "}"]
    assert Path("jobs.yaml").stat().st_mode & 0o777 == Path("jobs.json").stat().st_mode & 0o777
    assert sorted(path.name for path in Path().iterdir()) == ["jobs.json", "jobs.yaml"]


def test_a_file_has_intervals() -> None:
    write("a.json", A | {"schedule": "@every 2w on fri at 08:00"})
    assert cron("apply", "a.json")[0] == 0
    assert cron("apply", "a.json", "--check")[0] == 0
    assert '"schedule": "@every 2w on fri at 08:00"' in cron("export", "-")[1]
    write("a.json", A | {"schedule": "@every 10s"})
    code, _out, err = cron("apply", "a.json")
    assert (code, "CRON_SECONDS" in err) == (4, True)
    assert Scheduler.objects.get(name="a").schedule == "@every 2w on fri at 08:00"


def test_the_difference_is_printed_before_it_is_done() -> None:
    SchedulerFactory(name="a", schedule=YEARLY, description="line\nline", source_file="f.json", status=False)
    SchedulerFactory(name="b", schedule=YEARLY, source_file="f.json")
    write("f.json", A | {"time_limit": 60})
    code, out, err = cron("apply", "f.json", "--prune", "--dry-run")
    assert (code, err) == (0, "a is paused, and stays paused: the file has no “status”.\n")
    assert out.splitlines() == [
        "- delete b",
        "~ change a",
        r"    description: line\nline → (empty)",
        "    time_limit: (empty) → 60",
        "To make: 0. To change: 1. To delete: 1. Unchanged: 0.",
    ]
    assert Scheduler.objects.count() == 2
    code, out, err = cron("apply", "f.json", "--prune", "--check", "--json")
    found = json.loads(out)
    assert (code, found["kind"], found["drift"], found["source"]) == (1, "plan", True, "f.json")
    assert found["steps"][1]["edits"][1] == {"name": "time_limit", "old": None, "new": "60"}
    assert json.loads(cron("apply", "f.json", "--prune", "--json")[1])["kind"] == "applied"
    assert list(Scheduler.objects.values_list("name", "time_limit")) == [("a", 60)]


def test_an_empty_file_deletes_nothing_without_the_number() -> None:
    write("f.json", A, A | {"name": "b"})
    assert cron("apply", "f.json")[0] == 0
    write("f.json")
    hint = "All or most schedules of the file would be deleted. To confirm, add --count 2."
    for look, expected in ((), 4), (("--dry-run",), 0), (("--check",), 1):
        code, _out, err = cron("apply", "f.json", "--prune", *look)
        assert (code, err.splitlines()[0]) == (expected, hint)
        wrong = cron("apply", "f.json", "--prune", "--count", "3", *look)
        assert (wrong[0], "not the number" in wrong[2]) == (4, True)
    assert json.loads(cron("apply", "f.json", "--prune", "--dry-run", "--json")[1])["needs_count"] == 2
    assert json.loads(cron("apply", "f.json", "--dry-run", "--json")[1])["needs_count"] is None
    assert cron("apply", "f.json", "--prune", "--check", "--count", "2")[::2] == (1, "")
    assert Scheduler.objects.count() == 2
    assert cron("apply", "f.json", "--prune", "--count", "2")[0] == 0
    assert not Scheduler.objects.exists()


def test_what_cannot_be_applied_is_refused_with_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    write("f.json", A | {"wrong": 1}, A | {"name": "b", "time_limit": "x"}, A | {"name": "c"})
    for more in ([], ["--dry-run"], ["--check"]):
        code, _out, err = cron("apply", "f.json", *more)
        assert code == 4
        first, second = err.splitlines()
        assert first.startswith("a.wrong: A file has no such value. It may have: name, ")
        assert second == "b.time_limit: must be a whole number"
    assert json.loads(cron("apply", "f.json", "--json")[1])["problems"][0]["field"] == "a.wrong"
    Path("f.json").write_text('{"version": 1, "schedules": [{"name": "A\x1b"}, {}]}')
    assert cron("apply", "f.json")[::2] == (
        4,
        "Line 1: the file is not JSON: a text has a control character, such as a line end.\n",
    )
    Path("deep.yaml").write_text("[" * 10_000)
    Path("long.yaml").write_text("x" * 10_000_000)
    for file in ("deep.yaml", "long.yaml", "nowhere.json", ".", "a\x00b"):
        code, out, err = cron("apply", file)
        assert (code, out) == (4, "")
        assert 10 < len(err) < 300
    write("a b.json", A)
    assert "Give a source" in cron("apply", "a b.json")[2]
    assert cron("apply", "a b.json", "--source", "jobs")[0] == 0
    write("other.json", A)
    assert "The file “jobs” owns this schedule" in cron("apply", "other.json")[2]
    assert cron("apply", "other.json", "--take-over")[0] == 0
    assert cron("export", "nowhere/f.json")[0] == 4
    assert cron("export", "a\x00b")[0] == 4
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert "cronsite[yaml]" in cron("apply", "deep.yaml")[2]
    assert "cronsite[yaml]" in cron("export", "--format", "yaml")[2]
    assert yaml_documents.MAX_DEPTH < 100


def test_an_export_that_leaves_something_out_says_so_with_its_exit_code() -> None:
    SchedulerFactory(name="a", schedule=YEARLY)
    bad = SchedulerFactory(name="b", schedule=YEARLY)
    Scheduler.objects.filter(pk=bad.pk).update(params=[1])
    code, out, _err = cron("export", "f.json", "--json")
    reason = "its parameters are not a JSON object"
    assert (code, json.loads(out)["count"], json.loads(out)["left_out"]) == (1, 1, [{"id": bad.pk, "reason": reason}])
    assert Path("f.json").exists()
    code, _out, err = cron("export")
    assert (code, err) == (1, f"Schedule {bad.pk} is left out: {reason}.\n")


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    json_text = json.dumps({"version": 1, "schedules": [A]})
    given(monkeypatch, json_text)
    assert "Give a source" in cron("apply", "-")[2]
    for text in (json_text, "version: 1\nschedules:\n- {name: a, schedule: '0 0 1 1 *', worker: tests.noop}\n"):
        given(monkeypatch, text)
        assert cron("apply", "-", "--source", "jobs")[0] == 0
    given(monkeypatch, text)
    assert cron("apply", "-", "--source", "jobs", "--format", "json")[0] == 4
    assert Scheduler.objects.get().source_file == "jobs"


def test_secrets() -> None:
    secret = A | {"worker": "tests.keep", "params": {"token": "s3cret"}}
    write("f.json", secret)
    code, out, err = cron("apply", "f.json")
    assert code == 4
    assert "a.params.token" in err
    code, out, err = cron("apply", "f.json", "--allow-secrets")
    assert code == 0
    assert "s3cret" not in out + err
    assert Scheduler.objects.get().params == {"token": "s3cret"}
    assert "s3cret" not in cron("export")[1]


def test_in_whose_name(monkeypatch: pytest.MonkeyPatch) -> None:
    UserFactory(username="ed", permissions=EDITOR)
    write("f.json", A)
    assert cron("apply", "f.json", "--as", "ed")[0] == 0
    write("f.json")
    code, _out, err = cron("apply", "f.json", "--prune", "--count", "1", "--as", "ed")
    assert (code, "delete_scheduler" in err) == (4, True)
    monkeypatch.delenv("CRON_AS")
    assert cron("apply", "f.json", "--prune", "--check")[0] == 1  # looking needs no name
