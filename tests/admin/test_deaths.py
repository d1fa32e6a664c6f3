"""The page of an execution shows the deaths of its message (the header `x-death`), with one sentence for each."""

from __future__ import annotations

from typing import Any

import pytest
from bs4 import BeautifulSoup
from django.db import connection
from django.test import Client

from scheduling.admin.executions.deaths import sentence
from scheduling.core.deaths import Death
from scheduling.models import DeathRecord
from tests.admin.pages import page_of
from tests.factories import DeathRecordFactory, SchedulerExecutionFactory


@pytest.mark.parametrize(
    ("reason", "count", "expected"),
    [
        ("expired", 1, "RabbitMQ moved it out of q once because its time there was over."),
        ("expired", 3, "RabbitMQ moved it out of q 3 times because its time there was over."),
        ("expired", None, "RabbitMQ moved it out of q because its time there was over."),
        ("rejected", 1, "A consumer rejected it once in q."),
        ("rejected", 3, "A consumer rejected it 3 times in q."),
        ("rejected", None, "A consumer rejected it in q."),
        ("maxlen", 1, "RabbitMQ moved it out of q once because the queue was full."),
        ("maxlen", 2, "RabbitMQ moved it out of q 2 times because the queue was full."),
        ("maxlen", None, "RabbitMQ moved it out of q because the queue was full."),
        ("delivery_limit", 1, "It was delivered more often than the limit of q allows."),
        ("melted %s\n", 2, "It left q for the reason “melted %s\\n”."),
    ],
)
def test_each_reason_has_a_plain_sentence(reason: str, count: int | None, expected: str) -> None:
    assert sentence(Death("q", reason, count)) == expected


def table_of(client: Client, record: DeathRecord) -> list[list[str]]:
    """Return the texts of the table's cells, without the headings; empty if the page has no table."""
    response = client.get(page_of(record.execution))
    assert response.status_code == 200
    page = BeautifulSoup(response.content, "html.parser")
    return [[cell.get_text(" ", strip=True) for cell in row.find_all("td")] for row in page.select("#x-death tbody tr")]


def test_the_page_shows_the_deaths_of_the_message(viewer: Client) -> None:
    wait = {
        "queue": "cron_scheduler_retry.30", "reason": "expired", "count": 3, "exchange": "cron_dlx",
        "routing-keys": ["retry.30", "other"], "time": "2026-03-10T12:00:00+00:00",
    }  # fmt: skip
    rejection = {"queue": "cron_scheduler", "reason": "rejected"}
    assert table_of(viewer, DeathRecordFactory(entries=[wait, rejection])) == [
        [
            "RabbitMQ moved it out of cron_scheduler_retry.30 3 times because its time there was over.",
            "cron_scheduler_retry.30", "expired", "3", "cron_dlx retry.30 other", "2026-03-10 12:00:00 UTC",
        ],
        ["A consumer rejected it in cron_scheduler.", "cron_scheduler", "rejected", "-", "default", "-"],
    ]  # fmt: skip


def test_an_execution_without_deaths_shows_no_table(viewer: Client) -> None:
    assert b'id="x-death"' not in viewer.get(page_of(SchedulerExecutionFactory(failed=True))).content


@pytest.mark.parametrize("entries", [[], {}, "x", None, 1, [[[[]]]], [{"queue": {}, "reason": []}]])
def test_entries_that_cannot_be_used_are_not_shown(entries: Any, viewer: Client) -> None:
    record = DeathRecordFactory()
    DeathRecord.objects.update(entries=entries if entries is not None else {})
    assert table_of(viewer, record) == []


def test_hostile_entries_are_shown_as_text(viewer: Client) -> None:
    text = "<script>\x1b[31m\u202e%s\n"
    entry = {"queue": text, "reason": text, "count": 10**30, "exchange": text, "routing-keys": [text] * 100,
             "time": "9999-12-31T23:59:59-14:00"}  # fmt: skip
    record = DeathRecordFactory(entries=[entry] * 1000)
    rows = table_of(viewer, record)
    assert len(rows) == 20
    seen = "<script>\\x1b[31m\\u202e%s\\n"
    assert rows[0][1:4] == [seen, seen, "-"]
    assert rows[0][0] == f"It left {seen} for the reason “{seen}”."
    assert rows[0][4].count(seen) == 6  # the exchange and five of the routing keys
    assert b"<script>\\x1b" not in viewer.get(page_of(record.execution)).content


@pytest.mark.skipif(connection.vendor != "sqlite", reason="the other databases refuse text that is not JSON")
@pytest.mark.parametrize("stored", ["{", "", "[" * 2000 + "]" * 2000, "nonsense"])
def test_a_record_that_is_no_json_does_not_break_the_page(stored: str, viewer: Client) -> None:
    record = DeathRecordFactory()
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA ignore_check_constraints = ON")
        cursor.execute("UPDATE scheduling_deathrecord SET entries = %s", [stored])
        cursor.execute("PRAGMA ignore_check_constraints = OFF")
    assert table_of(viewer, record) == []
