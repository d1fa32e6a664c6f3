"""Runs that code asks for: they are part of the caller's transaction, and each key makes one run."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone as clock

from scheduling import api
from scheduling.api import Asked, run, run_many, status, wait
from scheduling.execution import bulk_rows
from scheduling.execution import submit as submitting
from scheduling.execution.bulk_rows import LEAST_ROWS
from scheduling.handlers import UnknownHandler
from scheduling.handlers.params import ParamsInvalid
from scheduling.models import SchedulerExecution, Worker
from tests.apps.sample.workers import MarkParams
from tests.support import ROOT, Commands, at_once, wait_for

pytestmark = pytest.mark.django_db

CALLERS = int(os.environ.get("TEST_CALLERS", "10"))
"""How many callers ask with one key at once. The server must allow so many connections."""


def row(pk: int) -> SchedulerExecution:
    return SchedulerExecution.objects.get(pk=pk)


def moved(pk: int, **columns: Any) -> None:
    """Change a row as a consumer would."""
    SchedulerExecution.objects.filter(pk=pk).update(**columns)


def test_the_errors_of_the_page_can_be_imported() -> None:
    page = (ROOT / "docs" / "api.md").read_text().partition("## Errors")[2]
    named = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) - {"ValueError"}
    assert len(named) >= 4
    assert named <= set(api.__all__)
    assert all(issubclass(getattr(api, name), Exception) for name in named)
    with pytest.raises(api.UnknownHandler):
        run("tests.unknown")
    with pytest.raises(api.ParamsInvalid):
        run("tests.mark", {"seconds": "x"})


def test_a_run_without_a_schedule() -> None:
    made = run("tests.mark", {"seconds": 2}, by="shop")
    assert made.is_new
    stored = row(made.id)
    assert (stored.scheduler, stored.trigger, stored.state, stored.queue) == (None, "code", "queued", "main")
    assert (stored.type, stored.target_name, stored.params) == ("worker", "tests.mark", {"seconds": 2})
    assert stored.target_id == Worker.objects.get(name="tests.mark").pk
    assert (stored.requested_by, stored.key) == ("shop", None)
    assert stored.execution_key.startswith("code-")
    assert stored.wake_at <= clock.now()


def test_an_instance_of_the_params_model_is_stored_as_what_was_set() -> None:
    assert row(run("tests.mark", MarkParams(seconds=3)).id).params == {"seconds": 3.0}


def test_headers_are_stored_with_the_run() -> None:
    headers = {"trace": "00-4bf92f", "é": ""}
    assert row(run("tests.noop", headers=headers).id).headers == headers
    assert row(run_many([Asked("tests.noop", headers=headers)])[0].id).headers == headers
    assert row(run("tests.noop", headers={}).id).headers is None
    for trace in ("first", "last"):
        made = run("tests.noop", key="k", debounce=60, headers={"trace": trace})
    assert row(made.id).headers == {"trace": "last"}


def test_a_later_start() -> None:
    at = clock.now() + timedelta(hours=2)
    for made in (run("tests.noop", at=at), run("tests.noop", at=at.astimezone(timezone(timedelta(hours=5))))):
        assert (row(made.id).wake_at, row(made.id).scheduled_at) == (at, at)
    later = row(run("tests.noop", delay=timedelta(minutes=5)).id)
    assert timedelta(minutes=4) < later.wake_at - clock.now() <= timedelta(minutes=5)
    past = row(run("tests.noop", at=at - timedelta(days=1)).id)
    assert past.scheduled_at == past.wake_at == past.executed_at


def test_a_worker_without_a_row_gets_one() -> None:
    Worker.objects.filter(name="tests.noop").delete()
    assert row(run("tests.noop").id).target_id == Worker.objects.get(name="tests.noop").pk


deep: Any = {}
for _ in range(40):
    deep = {"a": deep}


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"handler": "tests.nowhere"}, UnknownHandler, "tests.nowhere"),
        ({"params": {"wrong": 1}}, ParamsInvalid, "there is no such parameter"),
        ({"params": {"a": object()}}, ValueError, "not JSON"),
        ({"params": {"a": float("nan")}}, ValueError, "NaN"),
        ({"params": {"a": "\x00"}}, ValueError, "NUL"),
        ({"params": {"a": "\ud800"}}, ValueError, "half a character"),
        ({"params": deep}, ValueError, "nested"),
        ({"params": {"a": "x" * 2_000_000}}, ValueError, "longer"),
        ({"params": [1]}, ParamsInvalid, "JSON object"),
        ({"at": datetime(2030, 1, 1)}, ValueError, "time zone"),
        ({"at": datetime(9999, 6, 1, tzinfo=UTC)}, ValueError, "9998"),
        ({"delay": -1}, ValueError, "negative"),
        ({"delay": float("nan")}, ValueError, "timedelta"),
        ({"delay": 1e300}, ValueError, "too long"),
        ({"delay": "5"}, ValueError, "seconds"),
        ({"delay": 1, "at": datetime(2030, 1, 1, tzinfo=UTC)}, ValueError, "one of"),
        ({"key": "k" * 10_000}, ValueError, "10,000"),
        ({"unique": "waiting"}, ValueError, "key="),
        ({"debounce": 5}, ValueError, "key="),
        ({"headers": ["trace"]}, ValueError, "a mapping of texts to texts"),
        ({"headers": []}, ValueError, "a mapping of texts to texts"),
        ({"headers": {"trace": 1}}, ValueError, "to a text"),
        ({"headers": {1: "trace"}}, ValueError, "to a text"),
        ({"headers": {"": "trace"}}, ValueError, "to a text"),
        ({"headers": {"trace": "\x00"}}, ValueError, "to a text"),
        ({"headers": {"trace": "\ud800"}}, ValueError, "to a text"),
        ({"headers": {str(number): "" for number in range(21)}}, ValueError, "21 entries; at most 20"),
        ({"headers": {"a": "é" * 1_024}}, ValueError, "2,049 bytes; at most 2,048"),
        ({"key": "k", "unique": "sometimes"}, ValueError, "waiting"),
    ],
)
def test_bad_input_is_an_error_at_the_call(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        run(**{"handler": "tests.noop", **arguments})
    assert not SchedulerExecution.objects.exists()


def test_one_key_is_one_run_for_ever() -> None:
    first = run("tests.noop", key="Order 7")
    moved(first.id, state="succeeded")
    again = run("tests.noop", key="Order 7")
    assert (again.id, again.is_new) == (first.id, False)
    assert SchedulerExecution.objects.count() == 1


def test_keys_that_a_database_takes_for_equal_are_different_keys() -> None:
    keys = ["a", "A", "a ", " a", "á", "a\u0301", "k" * 56, "k" * 57, "k" * 1000, "ß", "ss", "#", "\x00", "\ud800"]
    assert len({run("tests.noop", key=key).id for key in keys}) == len(keys)
    assert all(not run("tests.noop", key=key).is_new for key in keys)


@pytest.mark.parametrize(
    ("unique", "state", "refused"),
    [
        ("waiting", "queued", True),
        ("waiting", "retrying", True),
        ("waiting", "running", False),
        ("waiting", "failed", False),
        ("running", "queued", True),
        ("running", "running", True),
        ("running", "retrying", True),
        ("running", "succeeded", False),
        ("running", "cancelled", False),
    ],
)
def test_how_long_a_key_refuses(unique: Any, state: str, refused: bool) -> None:
    first = run("tests.noop", key="k", unique=unique)
    moved(first.id, state=state)
    second = run("tests.noop", key="k", unique=unique)
    assert second.is_new is not refused
    third = run("tests.noop", key="k", unique=unique)
    assert (third.id, third.is_new) == (second.id, False)


def test_debounce_keeps_the_last_call() -> None:
    first = run("tests.mark", {"seconds": 1}, key="k", debounce=60)
    before = row(first.id).wake_at
    second = run("tests.mark", {"seconds": 2}, key="k", debounce=timedelta(seconds=90))
    assert (second.id, second.is_new) == (first.id, False)
    stored = row(first.id)
    assert stored.params == {"seconds": 2}
    assert stored.wake_at == stored.scheduled_at > before


@pytest.mark.parametrize("columns", [{"state": "running", "attempt": 1}, {"scheduled_at": clock.now()}])
def test_debounce_never_loses_the_last_call(columns: dict[str, Any]) -> None:
    """A run that is about to start has read its params already, so the last call needs a run of its own."""
    first = run("tests.mark", {"seconds": 1}, key="k", debounce=60)
    moved(first.id, **columns)
    second = run("tests.mark", {"seconds": 2}, key="k", debounce=60)
    assert second.is_new
    assert (row(first.id).params, row(second.id).params) == ({"seconds": 1}, {"seconds": 2})
    assert run("tests.mark", {"seconds": 3}, key="k", debounce=60).id == second.id


def test_many_runs_are_made_together_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_rows, "ROWS_PER_INSERT", 7)
    asked = [Asked("tests.mark", {"seconds": number}) for number in range(30)]
    asked[3:3] = [Asked("tests.mark", {"seconds": 100}, key="k"), Asked("tests.mark", {"seconds": 101}, key="k")]
    made = run_many(asked)
    assert [row(one.id).params for one in made[:4]] == [{"seconds": n} for n in (0, 1, 2, 100)]
    assert (made[4].id, made[4].is_new) == (made[3].id, False)
    assert len({one.id for one in made}) == 31 == SchedulerExecution.objects.count()
    assert {row(one.id).params["seconds"] for one in made} == {*range(30), 100}
    with pytest.raises(ParamsInvalid):
        run_many([Asked("tests.mark"), Asked("tests.mark", {"seconds": -1})])
    assert SchedulerExecution.objects.count() == 31
    assert run_many([]) == []


@pytest.mark.django_db(transaction=True)
def test_a_run_is_part_of_the_callers_transaction() -> None:
    class Rolled(Exception):
        pass

    def rolled_back() -> None:
        with transaction.atomic():
            run("tests.noop", key="k")
            run_many([Asked("tests.noop"), Asked("tests.noop")])
            raise Rolled

    with pytest.raises(Rolled):
        rolled_back()
    assert not SchedulerExecution.objects.exists()
    with transaction.atomic():
        made = run("tests.noop", key="k")
    assert made.is_new
    assert SchedulerExecution.objects.count() == 1


def test_many_rows_are_stored_as_one_is() -> None:
    """So many rows are inserted by statements of their own (`execution.bulk_rows`)."""
    first = clock.now() + timedelta(hours=1)
    words = ["Ä %s \\ \" ' 日本 😀", "{}", "null", "\n\t", "%(x)s", ""]
    wanted = [
        Asked(
            "tests.mark" if number % 2 else "tests.noop", {"seconds": number} if number % 2 else {},
            at=first + timedelta(microseconds=number) if number % 3 else None, by=words[number % 6],
            headers={"trace": words[number % 5]} if number % 7 else {},
        )
        for number in range(LEAST_ROWS + 50)
    ]  # fmt: skip
    for one, made in zip(wanted, run_many(wanted), strict=True):
        stored, alone = row(made.id), row(run_many([one])[0].id)
        own = {"id", "execution_key", "executed_at", "scheduled_at", "wake_at", "published_at"}
        for field in SchedulerExecution._meta.concrete_fields:
            if field.attname not in own:
                assert getattr(stored, field.attname) == getattr(alone, field.attname), field
        assert stored.executed_at <= stored.scheduled_at
        if one.at is not None:
            assert (stored.scheduled_at, stored.wake_at) == (one.at, one.at)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("arguments", [{}, {"unique": "running"}, {"debounce": 60}])
def test_callers_at_once_get_one_run(arguments: dict[str, Any]) -> None:
    for number in range(5):
        made = at_once([partial(run, "tests.noop", key=f"k{number}", **arguments) for _ in range(CALLERS)])
        assert len({one.id for one in made}) == 1
        assert sum(one.is_new for one in made) == 1
    assert SchedulerExecution.objects.count() == 5


def test_what_became_of_a_run() -> None:
    made = run("tests.noop")
    assert (status(made.id).state, status(made.id).is_over, status(made.id).result) == ("queued", False, None)
    with pytest.raises(TimeoutError, match="queued"):
        wait(made.id, 0.1)
    moved(made.id, state="failed", error_class="ValueError", error_message="no")
    assert (wait(made.id, 0).error, wait(made.id, 0).result) == ("ValueError: no", None)
    with pytest.raises(api.UnknownRun):
        status(made.id + 1)


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_a_consumer_runs_it_and_keeps_its_result(commands: Commands) -> None:
    made = run("tests.give", {"value": {"rows": [1, "é", None]}})
    large = run("tests.give", {"value": "x" * 70_000})
    later = run("tests.give", {"value": 7}, delay=3)
    worker = commands.start("run_worker", "--concurrency", "2")
    assert wait(made.id, 60).result == {"rows": [1, "é", None]}
    assert (wait(large.id, 60).state, wait(large.id, 60).result) == ("succeeded", None)
    assert wait(later.id, 60).result == 7
    assert row(later.id).started_at >= row(later.id).scheduled_at
    wait_for(lambda: row(large.id).outputs.exists(), "the output is stored")
    assert "70,002 bytes as JSON" in "".join(row(large.id).outputs.values_list("text", flat=True))
    assert commands.stop(worker) == 0


@pytest.mark.django_db(transaction=True)
def test_a_call_that_fails_half_way_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("half way")

    monkeypatch.setattr(submitting, "insert_with_key", fail)
    with pytest.raises(RuntimeError, match="half way"):
        run_many([Asked("tests.noop"), Asked("tests.noop"), Asked("tests.noop", key="k")])
    assert not SchedulerExecution.objects.exists()
