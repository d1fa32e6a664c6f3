"""Who looks at the dashboard, and how a part of it is asked for."""

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
    """Where the poller asks for a part."""
    return reverse("admin:scheduling_dashboard_part", args=[part])


@pytest.fixture
def watcher(db: None) -> Client:
    """May see the dashboard and nothing behind it."""
    return logged_in(UserFactory(username="watcher", permissions=[DASHBOARD]))


@pytest.fixture
def viewer(db: None) -> Client:
    """May look at everything."""
    return logged_in(UserFactory(username="viewer", permissions=[*VIEW, DASHBOARD]))


@pytest.fixture
def operator(db: None) -> Client:
    """May look at everything, run, pause and cancel."""
    return logged_in(UserFactory(username="operator", permissions=[*VIEW, *OPERATE, DASHBOARD]))


@pytest.fixture
def at_work(db: None) -> None:
    """A producer and a consumer that are alive."""
    ProcessFactory(producer=True)
    ProcessFactory()


@pytest.fixture
def context(viewer: Client) -> Callable[[str], dict[str, Any]]:
    """What a part is given to show."""

    def ask(part: str) -> dict[str, Any]:
        assert part in PARTS
        response = viewer.get(address(part))
        assert response.status_code == 200
        found: dict[str, Any] = response.context["part"]
        return found

    return ask
