"""Fixtures for the dashboard's tests: clients with different permissions, and requests for a part of the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from scheduling.admin.dashboard.view import PARTS
from tests.admin.conftest import OPERATE, VIEW, logged_in
from tests.factories import ProcessFactory, UserFactory

DASHBOARD = "scheduling.view_dashboard"
PAGE = "/admin/scheduling/dashboard/"


def address(part: str) -> str:
    """Return the URL from which the dashboard's script reloads this part of the page."""
    return reverse("admin:scheduling_dashboard_part", args=[part])


@pytest.fixture
def watcher(db: None) -> Client:
    """A client of a user who may open the dashboard, but none of the pages to which the dashboard links."""
    return logged_in(UserFactory(username="watcher", permissions=[DASHBOARD]))


@pytest.fixture
def viewer(db: None) -> Client:
    """A client of a user who may look at everything and change nothing."""
    return logged_in(UserFactory(username="viewer", permissions=[*VIEW, DASHBOARD]))


@pytest.fixture
def operator(db: None) -> Client:
    """A client of a user who may look at everything, run, pause and cancel."""
    return logged_in(UserFactory(username="operator", permissions=[*VIEW, *OPERATE, DASHBOARD]))


@pytest.fixture
def at_work(db: None) -> None:
    """Rows of a producer and a consumer that are alive."""
    ProcessFactory(producer=True)
    ProcessFactory()


@pytest.fixture
def context(viewer: Client) -> Callable[[str], dict[str, Any]]:
    """Return a function that requests a part of the dashboard and returns its template context."""

    def ask(part: str) -> dict[str, Any]:
        assert part in PARTS
        response = viewer.get(address(part))
        assert response.status_code == 200
        found: dict[str, Any] = response.context["part"]
        return found

    return ask
