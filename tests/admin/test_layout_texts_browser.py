"""On the pages of an invented installation, each text can be read in full on a desktop, a tablet and a phone."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone as clock
from playwright.sync_api import Page

from scheduling.handlers import registry
from scheduling.handlers.targets import sync_targets
from scheduling.models import Replay
from tests.admin.chromium import Visit, overflow
from tests.admin.conftest import logged_in
from tests.admin.layout_faults import BROKEN_WORDS, CUT, CUT_TEXTS, FIRST_ROW, OUT_OF_REACH, SQUEEZED
from tests.admin.pages import address
from tests.admin.rows import Rows
from tests.admin.screenshots.__main__ import SIZES
from tests.admin.screenshots.present import keep_alive, store_installation
from tests.admin.screenshots.scenes import Scene, every_page, further_scenes
from tests.server_share import shared_pages

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

CUT_RUNS = """() => [...document.querySelectorAll(".sch-recent .sch-scroll")]
    .filter(box => box.scrollWidth > box.clientWidth).map(box => `recent runs are cut: ${box.scrollWidth}`)"""
"""Finds a table of recent runs whose last column is beside the window, also on a phone."""

HIGHEST = {"inbox, each failure": 400, "inbox, by error": 400, "executions": 300, "schedules": 320}
"""For each list: on a desktop and a tablet, its first row begins at most this many pixels below the top of the page."""


@pytest.fixture
def installation(transactional_db: None, monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> Rows:
    """The rows of an invented installation. The code of its workers is registered during the test."""
    settings.MEDIA_ROOT = tmp_path
    monkeypatch.setattr(registry, "_handlers", dict(registry._handlers))
    for name in ("workers", "reports"):
        importlib.reload(importlib.import_module(f"tests.apps.shop.{name}"))
    sync_targets()
    return store_installation(clock.now())


def faults(page: Page, scene: Scene) -> list[str]:
    """What is wrong with a page in each size."""
    wrong = []
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        found = [
            fault for script in (CUT_TEXTS, BROKEN_WORDS, SQUEEZED, CUT, CUT_RUNS) for fault in page.evaluate(script)
        ]
        if overflow(page) > 0:
            found.append(f"{overflow(page)} pixels wider than the window")
        if "menu" not in scene.name and "help" not in scene.name:  # an open menu lies over what is below it
            found += page.evaluate(OUT_OF_REACH)
        wrong += [f"{scene.name} {width}: {fault}"[:300] for fault in found]
    return wrong


def test_every_text_can_be_read_in_full(visit: Visit, installation: Rows) -> None:
    began, client = clock.now(), logged_in(User.objects.get(username="anna"))
    page, wrong = visit("anna", zone="Europe/Berlin"), list[str]()
    client.defaults["SERVER_NAME"] = "localhost"
    scenes = [*every_page(installation, client), *further_scenes()]
    # Django's own lists, and a page that the server reports as missing
    scenes = [scene for scene in scenes if not scene.name.startswith(("auth_", "nowhere"))]
    assert len(scenes) > 60
    for scene in shared_pages(scenes, lambda one: one.name):
        keep_alive(began, clock.now())
        page.set_viewport_size({"width": 1440, "height": 900})
        page.goto(scene.path)
        scene.steps(page)
        wrong += faults(page, scene)
    assert not wrong, f"{len(wrong)} faults\n" + "\n".join(wrong[:60])


@pytest.mark.parametrize("replays", [True, False])
def test_lists_begin_on_the_first_screen(visit: Visit, installation: Rows, replays: bool) -> None:
    if not replays:
        Replay.objects.all().delete()
    page, places = visit("anna"), {}
    for width, height in SIZES[:2]:
        page.set_viewport_size({"width": width, "height": height})
        for name, path in {
            "inbox, each failure": address("failedexecution") + "?group=each",
            "inbox, by error": address("failedexecution") + "?group=error",
            "executions": address("schedulerexecution"),
            "schedules": address("scheduler"),
        }.items():
            page.goto(path)
            places[name, width] = round(page.evaluate(FIRST_ROW))
    print(places)  # noqa: T201 - for the one who measures
    assert {place: y for place, y in places.items() if y > HIGHEST[place[0]]} == {}
