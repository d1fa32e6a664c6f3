"""The page of an execution shows what its handler has finished, and no result of a step."""

from __future__ import annotations

import pytest
from bs4 import BeautifulSoup
from django.test import Client

from scheduling.admin.executions import finished_steps
from scheduling.models import SchedulerExecution
from tests.admin.pages import page_of
from tests.factories import RunStepFactory, SchedulerExecutionFactory


def lines_of(client: Client, execution: SchedulerExecution) -> list[list[str]]:
    """The texts of the cells of the table, without the times; empty if the page has no table."""
    response = client.get(page_of(execution))
    assert response.status_code == 200
    page = BeautifulSoup(response.content, "html.parser")
    rows = [row.find_all(["th", "td"]) for row in page.select("#steps tbody tr")]
    return [[cell.get_text(" ", strip=True) for cell in cells][:3] for cells in rows]


def test_the_page_shows_finished_steps_and_positions(viewer: Client) -> None:
    step = RunStepFactory(name="charge", value='"t0p secret"', execution__attempt=2)
    RunStepFactory(name="shop.order", position=True, value="<b>\u202e", attempt=2, execution=step.execution)
    assert lines_of(viewer, step.execution) == [
        ["charge", "finished", "1"],
        ["shop.order", "position <b>\\u202e", "2"],
    ]
    assert b"t0p secret" not in viewer.get(page_of(step.execution)).content


def test_the_page_of_a_run_without_steps_has_no_table(viewer: Client) -> None:
    assert lines_of(viewer, SchedulerExecutionFactory(running=True)) == []


def test_the_page_lists_the_last_steps(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finished_steps, "SHOWN", 2)
    execution = SchedulerExecutionFactory(running=True)
    for name in "abc":
        RunStepFactory(name=name, execution=execution)
    assert [line[0] for line in lines_of(viewer, execution)] == ["b", "c"]
