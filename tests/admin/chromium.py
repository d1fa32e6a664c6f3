"""Helpers for browser tests: they find Chromium and do common steps on a page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

from playwright.sync_api import Page, expect

ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


Visit = Callable[..., Page]

expect.set_options(timeout=20_000)  # milliseconds: long enough for a busy machine


def chromium_path() -> str | None:
    """Return the path of Chromium, or None. The environment variable CHROMIUM overrides the search for the program."""
    # The headless shell needs less CPU than Chromium, because it draws no window around the page.
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


def overflow(page: Page) -> int:
    """Return by how many pixels the page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def choose(page: Page, text: str, action: str) -> None:
    """Select the row that contains this text in an admin list, and run an action on the row."""
    page.get_by_role("row").filter(has_text=text).get_by_role("checkbox").check()
    page.get_by_label("Action:").select_option(label=action)
    page.get_by_role("button", name="Go").click()
