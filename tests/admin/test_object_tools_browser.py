"""Browser test of an object's buttons: they stand under its title, and never cover it."""

from __future__ import annotations

import pytest
from django.urls import reverse
from playwright.sync_api import Locator

from tests.admin.chromium import Visit
from tests.factories import ReminderFactory, UserFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def bottom(part: Locator) -> float:
    box = part.bounding_box()
    assert box is not None
    return box["y"] + box["height"]


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_the_buttons_of_an_object_stand_under_its_title(visit: Visit, width: int) -> None:
    UserFactory(username="ada", superuser=True)
    row = ReminderFactory(name="The meeting of all who work with the orders of the warehouse " * 2)
    page = visit("ada", width=width)
    page.goto(reverse("admin:scheduling_reminder_change", args=[row.pk]))
    title = bottom(page.locator("#content > h1"))
    buttons = page.locator(".object-tools a")
    assert buttons.all_inner_texts() == ["Run once", "Pause", "History"]
    for button in buttons.all():
        box = button.bounding_box()
        assert box is not None
        assert box["y"] >= title
        assert 0 <= box["x"] <= width - box["width"]
