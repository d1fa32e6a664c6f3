"""Tests of the form's folded groups, its languages, its lengths of time and the focus on the first error."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from scheduling.models import Scheduler
from tests.admin.scheduler_form import ADD, change, form, worker
from tests.factories import GroupFactory, SchedulerFactory

pytestmark = pytest.mark.django_db

AFTER, LIMITS = "Start after another schedule", "Time limit, language"
BOUNDS = "Start deadline, number of runs"


def folded(page: str) -> set[str]:
    """Return the names of the groups of fields that are folded."""
    return set(re.findall(r"<details>\s*<summary>\s*<h2[^>]*>\s*([^<]+?)\s*</h2>", page))


def test_empty_groups_are_folded(editor: Client) -> None:
    wanted = {
        "Spread, missed runs, bounds",
        "Calendar",
        "Retry policy",
        BOUNDS,
        AFTER,
        LIMITS,
        "Retention",
        "Monitor",
        "Owner",
    }
    assert folded(editor.get(ADD).content.decode()) == wanted


@pytest.mark.parametrize(
    ("columns", "open_group"),
    [
        ({"max_retries": 0}, "Retry policy"),
        ({"keep_count": 5}, "Retention"),
        ({"time_limit": 0}, LIMITS),
        ({"language": "de"}, LIMITS),
    ],
)
def test_a_group_with_a_value_is_open(editor: Client, columns: dict[str, Any], open_group: str) -> None:
    row = SchedulerFactory(**columns)
    assert open_group not in folded(editor.get(change(row)).content.decode())
    assert open_group not in folded(editor.get(f"{ADD}?copy={row.pk}").content.decode())


def test_a_group_with_an_error_is_open_and_its_field_has_the_focus(editor: Client) -> None:
    page = editor.post(ADD, form(worker=worker(), retry_delay_ms="5x")).content.decode()
    assert "Retry policy" not in folded(page)
    (field,) = re.findall(r"<input[^>]*autofocus[^>]*>", page)
    assert 'name="retry_delay_ms"' in field
    assert "“5x”" not in page
    assert "“x” is no unit. Use ms, s, m, h or d." in page
    assert "django-admin-form-add-constants" not in page  # the script that moves the focus to the first field


def test_the_first_of_several_errors_has_the_focus(editor: Client) -> None:
    page = editor.post(ADD, form(worker=worker(), schedule="99 * * * *", time_limit="soon")).content.decode()
    (field,) = re.findall(r"<input[^>]*autofocus[^>]*>", page)
    assert 'name="schedule"' in field


def test_lengths_of_time_are_stored_as_numbers_and_shown_with_units(editor: Client) -> None:
    values = form(worker=worker(), retry_delay_ms="5m", retry_max_delay_ms="1h", time_limit="1h 30m")
    assert editor.post(ADD, values).status_code == 302
    row = Scheduler.objects.get()
    assert (row.retry_delay_ms, row.retry_max_delay_ms, row.time_limit) == (300_000, 3_600_000, 5_400)
    page = editor.get(change(row)).content.decode()
    for value in ("5m", "1h", "1h 30m"):
        assert f'value="{value}"' in page
    # A form that is saved without a change stores no change.
    assert editor.post(change(row), values).status_code == 302
    row.refresh_from_db()
    assert row.time_limit == 5_400


def test_a_time_limit_of_zero_means_none(editor: Client) -> None:
    assert editor.post(ADD, form(worker=worker(), time_limit="0s")).status_code == 302
    assert Scheduler.objects.get().time_limit == 0


def test_languages_in_use_come_first(editor: Client) -> None:
    SchedulerFactory(language="de")
    page = editor.get(ADD).content.decode()
    (used,) = re.findall(r'<optgroup label="In use">(.*?)</optgroup>', page, re.DOTALL)
    assert re.findall(r'value="([^"]+)"', used) == ["de", "en-us"] or re.findall(r'value="([^"]+)"', used) == ["de"]
    row = SchedulerFactory(group=GroupFactory())
    Scheduler.objects.filter(pk=row.pk).update(language="tlh")  # not in LANGUAGES
    assert 'value="tlh" selected' in editor.get(change(row)).content.decode()
