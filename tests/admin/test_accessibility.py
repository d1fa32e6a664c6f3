"""axe-core checks every page against WCAG 2 in a real browser, with light and dark colours and two window widths.

The tests open the pages without a Content-Security-Policy, because the site's policy would block axe-core.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from tests.admin.addresses import Address, every_address
from tests.admin.axe import page_faults
from tests.admin.chromium import Visit
from tests.admin.conftest import logged_in
from tests.admin.rows import one_of_each
from tests.factories import SchedulerFactory, UserFactory
from tests.server_share import shared_pages

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

FRAGMENTS = ("part", "preview", "changes", "params", "follow", "chip", "output", "download", "keys")
"""An address whose name ends with one of these words returns a file or only a part of a page."""


def pages(user: User) -> list[Address]:
    """Return the pages that this user can open. The page of an execution is returned once for each execution."""
    client = logged_in(user)
    found: dict[tuple[str, Any], Address] = {}
    for address in every_address(one_of_each()):
        if address.name.endswith(FRAGMENTS) or not (address.own or address.name in ("index", "app_list")):
            continue
        row = address.row.pk if address.row is not None and address.name.endswith("execution_change") else None
        if client.get(address.path, SERVER_NAME="localhost").status_code == 200:
            found.setdefault((address.name or address.path, row), address)
    return list(found.values())


def test_no_page_has_accessibility_faults(visit: Visit, settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path
    root = UserFactory(username="ada", superuser=True)
    SchedulerFactory.create_batch(3, schedule="* * * * *")  # the dashboard lists what falls due soon
    addresses = pages(root)
    assert len(addresses) > 30
    page = visit("ada", strict=False)
    wrong: list[str] = []
    for address in shared_pages(addresses, lambda one: one.name or "root"):
        page.goto(address.path)
        row = f"-{address.row.pk}" if address.row is not None else ""
        wrong += page_faults(page, f"{address.name or 'root'}{row}")
    assert not wrong, "\n".join(wrong)
