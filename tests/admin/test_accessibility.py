"""axe-core checks every page against WCAG 2 in a real browser, with light and dark colours and two window widths.

The package `axe-playwright-python` contains axe-core. We chose this package because it is maintained, needs only
Playwright and has no fixtures of its own. The tests open the pages without a Content-Security-Policy, because the
site's policy would block axe-core.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from django.contrib.auth.models import User
from playwright.sync_api import Page

from tests.admin.addresses import Address, every_address
from tests.admin.chromium import Visit, overflow
from tests.admin.conftest import logged_in
from tests.admin.rows import one_of_each
from tests.factories import UserFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

EVERY_RULE = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
COLOUR_RULES = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
"""The rules whose result depends on the colours. In dark colours, only these rules are checked."""

LOOKS = [("light", 1280), ("light", 420), ("dark", 420), ("dark", 1280)]

DJANGO_FAULTS = {
    # Django's list of an app's models does not load our style sheet, so links in its breadcrumbs are not underlined.
    ("app_list", "link-in-text-block", '.breadcrumbs > a[href$="admin/"]'),
    # Django's Select2 puts a text box without an accessible name into its combo box. The combo box itself has an
    # accessible name.
    *(
        (page, "aria-input-field-name", f"#select2-{box}-container")
        for page, box in (
            ("scheduling_schedulerexecution_changelist", "filter_scheduler"),
            ("scheduling_failedexecution_changelist", "filter_scheduler"),
            ("scheduling_scheduler_add", "id_user"),
            ("scheduling_scheduler_edit", "id_user"),
        )
    ),
}
"""Faults of Django's own pages, as (page, rule, element). This project cannot mend these faults."""

SERIOUS_FAULTS = """async rules => (await axe.run({runOnly: rules, resultTypes: ["violations"]})).violations
    .filter(fault => ["serious", "critical"].includes(fault.impact))
    .flatMap(fault => fault.nodes.map(
        node => [fault.id, node.target.join(" "), node.html, node.failureSummary || ""]))"""
"""JavaScript that runs axe-core. For each serious fault, it returns the rule, the element, the element's HTML and a
summary."""

NO_TRANSITIONS = "*, *::before, *::after { transition: none !important }"
"""CSS that switches transitions off. Otherwise axe-core could measure a colour in the middle of a transition."""

COLOUR_ALONE = """() => [...document.querySelectorAll(".sch-chip")]
    .filter(chip => !chip.querySelector("svg") || !chip.textContent.trim()).map(chip => chip.outerHTML)"""
"""JavaScript that finds chips without an icon or without text."""

FRAGMENTS = ("part", "preview", "params", "follow", "output", "download", "keys")
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


def axe_faults(page: Page, name: str, rules: dict[str, Any]) -> Iterator[str]:
    """Yield the serious faults that axe-core finds. Faults of Django's own pages are left out."""
    for rule, where, html, summary in page.evaluate(SERIOUS_FAULTS, rules):
        if (name.partition("-")[0], rule, where) not in DJANGO_FAULTS:
            yield f"{rule}: {where}: {html[:200]} {summary[:300]}"


def page_faults(page: Page, name: str) -> Sequence[str]:
    """Check the page in each colour scheme and width. Return the page's faults."""
    wrong = [f"{name}: by colour alone: {chip}" for chip in page.evaluate(COLOUR_ALONE)]
    page.evaluate(AXE_SCRIPT)
    page.add_style_tag(content=NO_TRANSITIONS)
    for scheme, width in LOOKS:
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 900})
        rules = EVERY_RULE if scheme == "light" else COLOUR_RULES
        wrong += [f"{name} {scheme} {width}: {fault}" for fault in axe_faults(page, name, rules)]
        if overflow(page) > 0:
            wrong.append(f"{name} {scheme} {width}: {overflow(page)} pixels wider than the window")
        if directory := os.environ.get("SCREENSHOTS"):
            page.screenshot(path=f"{directory}/{name}-{scheme}-{width}.png", full_page=True)
    return wrong


def test_no_page_has_accessibility_faults(visit: Visit, settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path
    root = UserFactory(username="ada", superuser=True)
    addresses = pages(root)
    assert len(addresses) > 30
    page = visit("ada", strict=False)
    wrong: list[str] = []
    for address in addresses:
        page.goto(address.path)
        row = f"-{address.row.pk}" if address.row is not None else ""
        wrong += page_faults(page, f"{address.name or 'root'}{row}")
    assert not wrong, "\n".join(wrong)
