"""axe-core in a real browser: the rules, the looks, and the faults that it finds on a page.

The package `axe-playwright-python` contains axe-core. We chose this package because it is maintained, needs only
Playwright and has no fixtures of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from axe_playwright_python.base import AXE_SCRIPT as AXE_SCRIPT
from playwright.sync_api import Page, expect

from tests.admin.chromium import overflow

EVERY_RULE = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
COLOUR_RULES = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
"""The rules whose result depends on the colours. In dark colours, only these rules are checked."""

LOOKS = [("light", 1280), ("light", 420), ("dark", 1280)]

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


def axe_faults(page: Page, name: str, rules: dict[str, Any]) -> Iterator[str]:
    """Yield the serious faults that axe-core finds. Faults of Django's own pages are left out."""
    for rule, where, html, summary in page.evaluate(SERIOUS_FAULTS, rules):
        if (name.partition("-")[0], rule, where) not in DJANGO_FAULTS:
            yield f"{rule}: {where}: {html[:200]} {summary[:300]}"


def looks(page: Page) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Load axe-core, then give the page each look. Yield the colour scheme, the width and the rules to check."""
    page.evaluate(AXE_SCRIPT)
    page.add_style_tag(content=NO_TRANSITIONS)
    for scheme, width in LOOKS:
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 900})
        yield scheme, width, EVERY_RULE if scheme == "light" else COLOUR_RULES


def page_faults(page: Page, name: str) -> Sequence[str]:
    """Check the page in each colour scheme and width. Return the page's faults."""
    expect(page.locator(".dash-slot:empty")).to_have_count(0)  # the dashboard fetches one part after the page
    wrong = [f"{name}: by colour alone: {chip}" for chip in page.evaluate(COLOUR_ALONE)]
    for scheme, width, rules in looks(page):
        wrong += [f"{name} {scheme} {width}: {fault}" for fault in axe_faults(page, name, rules)]
        if overflow(page) > 0:
            wrong.append(f"{name} {scheme} {width}: {overflow(page)} pixels wider than the window")
        if directory := os.environ.get("SCREENSHOTS"):
            page.screenshot(path=f"{directory}/{name}-{scheme}-{width}.png", full_page=True)
    return wrong
