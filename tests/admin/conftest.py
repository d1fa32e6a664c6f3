"""Who comes to the admin: an editor who may do everything, an operator, a viewer, somebody without any right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.factories import UserFactory

MODELS = ("scheduler", "schedulerexecution", "failedexecution", "worker", "reminder", "process")

VIEW = [f"scheduling.view_{model}" for model in MODELS]

OPERATE = [
    "scheduling.run_scheduler",
    "scheduling.pause_scheduler",
    "scheduling.rerun_execution",
    "scheduling.cancel_execution",
    "scheduling.republish_failedexecution",
    "scheduling.discard_failedexecution",
]

Login = Callable[[User], Client]


def logged_in(user: User) -> Client:
    """A client of this user."""
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def editor(db: None) -> Client:
    """May do everything."""
    return logged_in(UserFactory(username="editor", superuser=True))


@pytest.fixture
def operator(db: None) -> Client:
    """May look at everything and run, pause, cancel, republish, discard; may not edit."""
    return logged_in(UserFactory(username="operator", permissions=[*VIEW, *OPERATE]))


@pytest.fixture
def viewer(db: None) -> Client:
    """May look at everything."""
    return logged_in(UserFactory(username="viewer", permissions=VIEW))


@pytest.fixture
def nobody(db: None) -> Client:
    """Is staff, and may do nothing."""
    return logged_in(UserFactory(username="nobody"))


def said(response: Any) -> list[str]:
    """The messages that a followed response shows."""
    return [str(message) for message in response.context["messages"]]
