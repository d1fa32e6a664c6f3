"""The tests check the built-in worker `run_command` and the schedule of the nightly cleanup, which uses this worker."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from scheduling.conf import DEFAULT_COMMANDS
from scheduling.handlers import find
from scheduling.handlers.params import ParamsInvalid, validate
from scheduling.handlers.validation import params_error
from scheduling.models import Scheduler
from scheduling.workers import run_command as workers
from scheduling.workers.run_command import CommandParams, run_command
from tests.reports.support import run_of


def refusal(**params: Any) -> str:
    """Check that `run_command` refuses these params, and return the error message."""
    with pytest.raises(ParamsInvalid) as caught:
        validate(find("worker", "run_command"), params)
    return str(caught.value)


def test_forbidden_command_is_refused_with_the_allowed_ones() -> None:
    assert refusal(command="flush") == (
        "command: 'flush' may not be run from here. Allowed: check, cleanup_executions, clearsessions, showmigrations. "
        "The setting CRON_COMMANDS says which."
    )


def test_a_change_of_the_setting_applies_at_once(settings: Any) -> None:
    settings.CRON_COMMANDS = "flush"
    params = validate(find("worker", "run_command"), {"command": "flush", "args": ["--noinput"]})
    assert params.model_dump() == {"command": "flush", "args": ["--noinput"]}
    assert CommandParams.model_json_schema()["properties"]["command"]["enum"] == sorted((*DEFAULT_COMMANDS, "flush"))
    settings.CRON_COMMANDS = "-*"
    assert "Allowed: none." in refusal(command="check")


def test_an_allowed_command_that_does_not_exist_is_refused(settings: Any) -> None:
    settings.CRON_COMMANDS = "nonsense"
    assert "There is no management command 'nonsense'" in refusal(command="nonsense")


@pytest.mark.parametrize(
    "argument",
    ["--settings=evil", "--settings", "--pythonpath=/tmp/x", "--pythonpath", "--set=evil", "--python", "--se"],
)
def test_arguments_that_choose_settings_or_a_python_path_are_refused(argument: str) -> None:
    assert "cannot say where code is read from" in refusal(command="check", args=[argument])


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["x" * 501], "at most 500 characters"),
        (["x"] * 51, "at most 50 items"),
        ("--deploy", "must be a list"),
        ([7], "must be a text"),
        (["--help"], "only prints a text"),
        (["--dayz", "3"], "check does not take these arguments: unrecognized arguments: --dayz"),
        (["--fail-level", "LOUD"], "invalid choice: 'LOUD'"),
    ],
)
def test_invalid_arguments_are_refused(args: Any, sentence: str) -> None:
    assert sentence in refusal(command="check", args=args)


def test_valid_arguments_are_accepted() -> None:
    validate(find("worker", "run_command"), {"command": "cleanup_executions", "args": ["--days", "30", "--dry-run"]})


def test_abbreviated_settings_option_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "CODE_OPTIONS", ())  # so only the check of the parsed options is left
    assert "cannot say where code is read from" in refusal(command="check", args=["--setti", "evil"])


@pytest.mark.django_db
def test_the_output_of_the_command_goes_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    run_command(CommandParams(command="showmigrations", args=["cron_reports"]), run_of())
    assert "[X] 0001_initial" in capsys.readouterr().out


def test_the_error_of_a_command_is_the_error_of_the_run() -> None:
    with pytest.raises(CommandError, match='no system check with the "nowhere" tag'):
        run_command(CommandParams(command="check", args=["--tag", "nowhere"]), run_of())


@pytest.mark.django_db
def test_a_real_command_that_exits_fails_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CommandError, match=r"showmigrations exited with code 2\."):
        run_command(CommandParams(command="showmigrations", args=["nowhere"]), run_of())
    assert "No installed app with label 'nowhere'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "sentence"),
    [(3, "check exited with code 3."), ("bad luck", "check exited with 'bad luck'."), (True, "exited")],
)
def test_a_command_that_exits_fails_the_run(code: object, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(*_args: object) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(workers, "call_command", leave)
    with pytest.raises(CommandError, match=sentence):
        run_command(CommandParams(command="check"), run_of())


@pytest.mark.parametrize("code", [None, 0])
def test_a_command_that_exits_without_a_code_succeeds(code: object, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(*_args: object) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(workers, "call_command", leave)
    run_command(CommandParams(command="check"), run_of())


def test_run_command_runs_in_a_new_process() -> None:
    assert find("worker", "run_command").fresh


@pytest.fixture
def nightly_row(db: None) -> None:
    """Make the schedule of the nightly cleanup as the migration does. The test database has no such schedule."""
    migration = import_module("scheduling.migrations.0001_initial")
    historical = MigrationExecutor(connection).loader.project_state([("scheduling", "0001_initial")])
    migration.create_nightly_cleanup(historical.apps, SimpleNamespace(connection=connection))


def test_the_nightly_cleanup_is_a_schedule_that_is_not_planned_yet(nightly_row: None) -> None:
    row = Scheduler.objects.get(description="Nightly cleanup of old executions")
    assert (row.schedule, row.status, row.params) == ("0 3 * * *", True, {"command": "cleanup_executions"})
    assert (row.next_run_at, row.plan_state) == (None, 1)
    assert row.worker is not None
    assert row.worker.name == "run_command"
    assert params_error(row) == ""
