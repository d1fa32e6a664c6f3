"""The page "Review": any days, the CSV file, and who sees what."""

from __future__ import annotations

import csv
import io
from datetime import timedelta
from typing import Any

import pytest
from bs4 import BeautifulSoup
from django.test import Client
from django.utils import timezone as clock

from scheduling.models import Tally
from scheduling.operations.review_lines import COLUMNS
from tests.admin.conftest import logged_in
from tests.admin.pages import address
from tests.factories import GroupFactory, SchedulerFactory, TallyFactory, UserFactory

pytestmark = pytest.mark.django_db


def failed(target: str = "sync", days: int = 0, **columns: Any) -> Tally:
    at = (clock.now() - timedelta(days=days)).replace(minute=0, second=0, microsecond=0)
    row: Tally = TallyFactory(
        outcome="failed", reason="KeyError", failures=1, attempts=4, retries=3, target=target, hour=at, **columns
    )
    return row


def page(client: Client, query: str = "") -> BeautifulSoup:
    response = client.get(address("review") + query)
    assert response.status_code == 200
    return BeautifulSoup(response.content, "html.parser")


def test_the_page_shows_the_last_seven_days_with_charts_and_tables(viewer: Client) -> None:
    failed()
    failed(days=3)
    failed(days=9)
    found = page(viewer)
    assert found.select_one(".sch-verdict strong").text == "2 failures, 1 more than in the week before"  # type: ignore[union-attr]
    headings = [heading.text for heading in found.select("h2")]
    assert headings[:2] == ["Failed for good, by day", "Retries, by day"]
    bars = [title.text for title in found.select("svg.sch-days rect title")]
    assert len(bars) == 14
    assert bars[6].endswith("1 of 1 run failed for good")
    assert "style=" not in str(found.select_one("#content-main"))
    assert not found.select("#content-main script")


def test_any_days_can_be_chosen_and_wrong_ones_are_explained(viewer: Client) -> None:
    failed(days=40)
    day = (clock.now() - timedelta(days=40)).date().isoformat()
    assert "1 failure, 1 more than in the day before" in page(viewer, f"?from={day}&to={day}").text
    for query, words in (
        ("?from=yesterday", "Write both days as"), ("?from=2020-01-01", "at most 92 days"), ("?to=%00", "Write both"),
    ):  # fmt: skip
        found = page(viewer, query)
        assert words in found.select_one(".errornote").text  # type: ignore[union-attr]
        assert found.select_one("#sch-to")["value"] == clock.now().date().isoformat()  # type: ignore[index]


def test_the_file_has_the_tables_of_the_same_days_and_no_formulas(viewer: Client) -> None:
    failed(target="=1+1")
    day = clock.now().date().isoformat()
    response = viewer.get(f"{address('review', 'download')}?from={day}&to={day}")
    assert response["Content-Disposition"] == f'attachment; filename="review-{day}-{day}.csv"'
    rows = list(csv.DictReader(io.StringIO(response.content.decode("utf-8-sig"))))
    assert list(rows[0]) == list(COLUMNS)
    (failure,) = [row for row in rows if row["part"] == "failure"]
    assert (failure["target"], failure["reason"], failure["failures"]) == ("'=1+1", "KeyError", "1")
    (line,) = [row for row in rows if row["part"] == "day"]
    assert (line["day"], line["retries"], line["retry_share"]) == (day, "3", "0.75")


def test_numbers_of_another_group_are_on_no_page_and_in_no_file() -> None:
    own, other = GroupFactory(), GroupFactory()
    failed("mine", group=own.pk)
    failed("theirs", group=other.pk)
    failed("theirs before", group=other.pk, days=8)
    user = UserFactory(permissions=["scheduling.view_review"])
    user.groups.add(own)
    client = logged_in(user)
    SchedulerFactory(group=other)  # the groups are used
    for where in (address("review"), address("review", "download")):
        text = client.get(where).content.decode()
        assert "mine" in text
        assert "theirs" not in text
    assert "1 failure, 1 more" in page(client).text
    assert "Only runs that you may see are counted." in page(client).text


def test_the_page_needs_its_permission(no_rights: Client) -> None:
    for where in (address("review"), address("review", "download")):
        assert no_rights.get(where).status_code == 403
