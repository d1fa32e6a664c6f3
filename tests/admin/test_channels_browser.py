"""The form of a new channel shows the fields of the chosen kind, with and without JavaScript."""

from __future__ import annotations

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from tests.admin.chromium import Visit
from tests.factories import UserFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SHOWN = {"chat": {"new_address"}, "webhook": {"new_address", "new_secret"}, "email": {"recipients"}}


@pytest.mark.parametrize("script", [True, False])
def test_the_fields_follow_the_kind(visit: Visit, script: bool) -> None:
    UserFactory(username="ada", superuser=True)
    page = visit("ada", script=script)
    page.goto(reverse("admin:scheduling_channel_add"))
    for kind in ("chat", "webhook", "email", "chat"):
        page.select_option("#id_kind", kind)
        for name in set().union(*SHOWN.values()):
            expect(page.locator(f"#id_{name}")).to_be_visible(visible=name in SHOWN[kind])
    page.select_option("#id_kind", "webhook")
    page.fill("#id_name", "Billing")
    page.fill("#id_new_address", "https://billing.example.com/cron")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".sch-once code")).to_contain_text("cronhook_")
    page.get_by_role("link", name="I have copied it").click()
    expect(page.locator("#content")).to_contain_text("is set: https://…")
