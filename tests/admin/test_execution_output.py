"""Tests of an execution's output: the page shows the new lines of a run, filters lines and escapes HTML."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as clock

from scheduling.admin.executions.output import Shown, after, tail
from scheduling.models import Output, SchedulerExecution
from scheduling.operations.output import Cursor, OutputLimits, download
from scheduling.operations.output_filter import Wanted
from tests.admin.pages import HOSTILE, page_of
from tests.factories import AttemptFactory, OutputFactory, SchedulerExecutionFactory

AT = "2026-03-10T12:00:00.000Z"


def store_output(row: SchedulerExecution, *texts: str, attempt: int = 1, level: str = "OUT") -> None:
    """Store the texts as lines of the attempt's output. Each line has a time and a level, as a consumer stores it."""
    sequence = Output.objects.filter(execution=row, attempt=attempt).count()
    text = "".join(f"{AT} {level} {text_line}\n" for text_line in texts)
    OutputFactory(execution=row, attempt=attempt, sequence=sequence, text=text)


def text_of(shown: Shown) -> str:
    """Return all lines of the output as HTML."""
    return "".join(html for _number, html in shown.groups)


def answer(client: Client, row: SchedulerExecution, **query: Any) -> dict[str, Any]:
    """Return the JSON answer to a request for new output. The script of the execution's page sends such requests."""
    response = client.get(page_of(row, "follow"), query)
    assert response.status_code == 200
    assert response["Content-Type"] == "application/json"
    found: dict[str, Any] = json.loads(response.content)
    return found


# --- the cursor -------------------------------------------------------------------------------------


def test_each_line_comes_once_and_in_order(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OutputLimits, "shown_lines", 7)
    row = SchedulerExecutionFactory(succeeded=True)
    for attempt in (1, 2, 4):
        for chunk in range(12):
            store_output(row, *(f"<{attempt}-{chunk}-{n}>" for n in range(3)), attempt=attempt)
    cursor, seen = Cursor(), ""
    for _turn in range(200):
        found = after(row.pk, cursor)
        assert found.lines <= 7
        seen += text_of(found)
        cursor = Cursor.of(str(found.cursor))
        if not found.cut:
            break
    wanted = [f"&lt;{attempt}-{chunk}-{n}&gt;" for attempt in (1, 2, 4) for chunk in range(12) for n in range(3)]
    assert [part.split("</b>")[1].split("\n")[0] for part in seen.split('<span class="sch-line')[1:]] == wanted
    assert after(row.pk, cursor).groups == []


def test_no_line_is_lost_between_the_page_and_the_next_answer(db: None) -> None:
    row = SchedulerExecutionFactory(running=True)
    store_output(row, "one")
    page = tail(row.pk)
    assert page.cursor == Cursor(1, 1)
    store_output(row, "two")
    store_output(row, "three", attempt=2)
    found = after(row.pk, page.cursor)
    assert [number for number, _html in found.groups] == [1, 2]
    assert "one" not in text_of(found)
    assert found.cursor == Cursor(2, 1)


def test_the_number_of_queries_does_not_grow_with_the_lines_already_read(db: None) -> None:
    row = SchedulerExecutionFactory(running=True)

    def cost() -> list[str]:
        cursor = tail(row.pk).cursor
        store_output(row, "news")
        with CaptureQueriesContext(connection) as captured:
            assert after(row.pk, cursor).lines == 1
        return [query["sql"] for query in captured.captured_queries]

    few = cost()
    for _number in range(300):
        store_output(row, "old")
    many = cost()
    assert len(many) == len(few) == 2
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            for sql in many:
                cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
                (plan,) = [detail for *_rest, detail in cursor.fetchall()]
                assert "(execution_id=? AND attempt" in plan, plan  # the query reads a range of the unique index


@pytest.mark.parametrize("nonsense", ["", "x", "1.2", "-1.0.0", "1.2.3.4", "9" * 40, "\u0661.\u0662.\u0663", "1.0.0\n"])
def test_an_invalid_cursor_means_the_beginning(nonsense: str) -> None:
    assert Cursor.of(nonsense) == Cursor()


def test_a_cursor_can_point_inside_a_chunk(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OutputLimits, "shown_characters", 60)
    row = SchedulerExecutionFactory(running=True)
    store_output(row, "a" * 20, "b" * 20, "c" * 20)
    first = after(row.pk, Cursor())
    assert (first.lines, first.cut) == (1, True)
    second = after(row.pk, first.cursor)
    assert "a" * 20 not in text_of(second)
    assert "b" * 20 in text_of(second)
    assert after(row.pk, Cursor(1, 0, 10**8)).lines == 0


# --- level, attempt and search ----------------------------------------------------------------------


@pytest.fixture
def two_attempts(db: None) -> SchedulerExecution:
    """An execution with two attempts. Each attempt printed one line of every level.

    The second attempt also printed a line without a time and a level.
    """
    row: SchedulerExecution = SchedulerExecutionFactory(failed=True, attempt=2)
    for attempt in (1, 2):
        for level in ("DEBUG", "OUT", "INFO", "SUCCESS", "WARN", "ERROR", "NOTE"):
            store_output(row, f"Said {level} {attempt}", attempt=attempt, level=level)
    OutputFactory(execution=row, attempt=2, sequence=99, text="without a stamp\n")
    return row


@pytest.mark.parametrize(
    ("level", "kept"),
    [
        ("", "DEBUG OUT INFO SUCCESS WARN ERROR NOTE"),
        ("info", "OUT INFO SUCCESS WARN ERROR NOTE"),
        ("warn", "WARN ERROR NOTE"),
        ("error", "ERROR NOTE"),
        ("nonsense", "DEBUG OUT INFO SUCCESS WARN ERROR NOTE"),
    ],
)
def test_the_level_filters_the_lines(two_attempts: SchedulerExecution, viewer: Client, level: str, kept: str) -> None:
    page = viewer.get(page_of(two_attempts), {"level": level}).content.decode()
    followed = answer(viewer, two_attempts, level=level)
    for name in ("DEBUG", "OUT", "INFO", "SUCCESS", "WARN", "ERROR", "NOTE"):
        for attempt in (1, 2):
            assert (f"Said {name} {attempt}" in page) == (name in kept.split()), name
            assert (f"Said {name} {attempt}" in str(followed["groups"])) == (name in kept.split()), name
    assert ("without a stamp" in page) == (level not in ("warn", "error"))


def test_search_ignores_case_and_marks_the_found_text(two_attempts: SchedulerExecution, viewer: Client) -> None:
    page = viewer.get(page_of(two_attempts), {"q": "said warn"}).content.decode()
    assert page.count("<mark>Said WARN</mark>") == 2
    assert "Said ERROR" not in page
    only = viewer.get(page_of(two_attempts), {"q": "said warn", "attempt": "2"}).content.decode()
    assert only.count("<mark>Said WARN</mark>") == 1
    none = viewer.get(page_of(two_attempts), {"q": ".*"}).content.decode()
    assert "No line matches." in none
    assert 'value=".*"' in none


def test_a_search_has_a_limit_and_the_page_says_so(
    two_attempts: SchedulerExecution, viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OutputLimits, "page_search_characters", 300)
    page = viewer.get(page_of(two_attempts), {"q": "Said DEBUG 1"}).content.decode()
    assert "were searched. Choose an attempt, or download all." in page
    assert "<mark>" not in page


def test_a_search_in_new_output_has_a_limit(two_attempts: SchedulerExecution, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OutputLimits, "answer_search_characters", 100)
    wanted, cursor, seen = Wanted(term="said note 2"), Cursor(), 0
    turns = 0
    while turns < 100:
        turns += 1
        found = after(two_attempts.pk, cursor, wanted)
        cursor, seen = found.cursor, seen + found.lines
        if not found.cut:
            break
    assert (seen, turns > 3) == (1, True)


def test_a_note_about_omitted_output_is_marked(viewer: Client) -> None:
    row = SchedulerExecutionFactory(succeeded=True)
    store_output(row, "... 500 bytes (3 lines) left out here: the output is longer than is kept ...", level="NOTE")
    store_output(row, "I was left out here")
    page = viewer.get(page_of(row)).content.decode()
    assert page.count("sch-cut") == 1


# --- the answer to the page's script ----------------------------------------------------------------


def test_a_run_is_followed_to_its_end(viewer: Client) -> None:
    row = SchedulerExecutionFactory(running=True)
    page = viewer.get(page_of(row))
    assert (page.context["over"], page.context["output"].cursor) == (False, Cursor())
    store_output(row, "first")
    found = answer(viewer, row, after="0.0.0", version="old")
    assert "first" in found["groups"][0][1]
    assert (found["cursor"], found["over"], found["more"], found["said"]) == ("1.1.0", False, False, "running")
    assert "on host-1-aaaa, attempt 1." in found["state"][0]
    AttemptFactory(execution=row, number=1, outcome="succeeded")
    SchedulerExecution.objects.filter(pk=row.pk).update(state="succeeded", finished_at=clock.now(), wake_at=None)
    found = answer(viewer, row, after=found["cursor"], version=found["version"])
    assert (found["groups"], found["over"], found["said"]) == ([], True, "succeeded")
    assert "Attempt 1 succeeded in" in found["state"][0]
    again = answer(viewer, row, after=found["cursor"], version=found["version"])
    assert (again["state"], again["over"]) == (None, True)
    assert viewer.get(page_of(row)).context["over"] is True


@pytest.mark.parametrize("change", [{"progress": "4/10"}, {"cancel_requested_by": "maria"}, {"attempt": 2}])
def test_a_change_of_the_row_changes_the_version(viewer: Client, change: dict[str, Any]) -> None:
    row = SchedulerExecutionFactory(running=True)
    versions = set()
    # The version changes every few seconds even if the row does not change, because the page shows relative times.
    # So the test collects several versions before the row changes.
    for _turn in range(3):
        versions.add(answer(viewer, row)["version"])
    SchedulerExecution.objects.filter(pk=row.pk).update(**change)
    assert answer(viewer, row)["version"] not in versions


def test_output_needs_the_permission_to_view_the_execution(no_rights: Client, client: Client, editor: Client) -> None:
    row = SchedulerExecutionFactory(running=True)
    store_output(row, "secret")
    for name in ("follow", "output"):
        assert no_rights.get(page_of(row, name)).status_code == 403
        assert client.get(page_of(row, name)).status_code == 302
    assert editor.post(page_of(row, "follow")).status_code == 405
    assert editor.get(page_of(row, "follow").replace(str(row.pk), "999999")).status_code == 404
    assert editor.get(page_of(row, "follow").replace(str(row.pk), "9" * 30)).status_code == 404
    assert editor.get(page_of(row, "follow").replace(str(row.pk), "x")).status_code == 404


def test_hostile_output_is_escaped_on_the_page_and_in_the_answer(viewer: Client) -> None:
    row = SchedulerExecutionFactory(running=True)
    store_output(row, HOSTILE)
    OutputFactory(execution=row, attempt=1, sequence=7, text=f"{HOSTILE}\n")
    page = viewer.get(page_of(row), {"q": "script"}).content.decode().split('id="output"')[1]
    followed = answer(viewer, row, q="<script>")["groups"][0][1]
    for text in (page, followed):
        assert "<script>" not in text
        assert "<img" not in text
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "\\x1b" in text
        assert "<mark>" in text
    assert followed.count("<mark>&lt;script&gt;</mark>alert(1)") == 2


# --- the download -----------------------------------------------------------------------------------


def test_the_download_reads_a_limited_number_of_chunks_per_query(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OutputLimits, "chunks_per_query", 3)
    row = SchedulerExecutionFactory(succeeded=True)
    for attempt in (1, 2):
        for number in range(7):
            store_output(row, f"line {attempt}-{number}", attempt=attempt)
    with CaptureQueriesContext(connection) as captured:
        parts = list(download(row.pk))
    assert all("LIMIT" in query["sql"] for query in captured.captured_queries)
    text = b"".join(parts).decode()
    assert [line.split(" ")[-1] for line in text.splitlines() if "line" in line] == [
        f"{attempt}-{number}" for attempt in (1, 2) for number in range(7)
    ]
    assert text.count("--- attempt") == 2


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="only SQLite stores any type in any column")
@pytest.mark.parametrize(
    ("column", "value"), [("attempt", "../../etc"), ("attempt", 2.5), ("sequence", "x"), ("text", b"\xff")]
)
def test_a_damaged_part_ends_the_download_with_its_reason(db: None, column: str, value: Any) -> None:
    row = SchedulerExecutionFactory(succeeded=True)
    store_output(row, "a healthy line")
    bad = OutputFactory(execution=row, attempt=3, sequence=0, text="")
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {Output._meta.db_table} SET {column} = %s WHERE id = %s", [value, bad.pk])
    text = b"".join(download(row.pk)).decode()
    assert "a healthy line" in text
    assert "--- The rest cannot be read: " in text
    if column == "attempt" and isinstance(value, float):
        assert tail(row.pk, Wanted(term="nothing")).lines == 0  # it ends
