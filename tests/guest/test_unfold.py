"""Under the theme django-unfold: inputs are visible, buttons stand apart, and texts can be read in both schemes."""

from __future__ import annotations

import importlib.util
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, sync_playwright

from scheduling.management.command_line import answer
from tests.admin.chromium import ARGUMENTS, chromium_path
from tests.guest.project import GuestProject, end
from tests.support import wait_for

pytestmark = [pytest.mark.browser, pytest.mark.processes, pytest.mark.any_database]

PAGES = {
    "the dashboard": "/admin/scheduling/dashboard/",
    "the list of schedules": "/admin/scheduling/scheduler/",
    "a schedule": "/admin/scheduling/scheduler/2/change/",
    "the form of a schedule": "/admin/scheduling/scheduler/add/",
    "a question before an act": "/admin/scheduling/scheduler/2/run/",
    "the failed inbox": "/admin/scheduling/failedexecution/",
    "an execution": "/admin/scheduling/schedulerexecution/1/change/",
    "a worker": "/admin/scheduling/worker/1/change/",
}

MAKE = """
from django.contrib.auth import get_user_model
get_user_model().objects.create_superuser("ada", "ada@example.com", "pw")
from scheduling.api import run, schedule
schedule("often", "*/5 * * * *", "sync")
run("broken")
"""

LOOK = (Path(__file__).parent / "look.js").read_text()


def folder_of_unfold() -> str:
    """The folder in which django-unfold is installed. Without it, the tests fail in CI and are skipped elsewhere."""
    spec = importlib.util.find_spec("unfold")
    if spec is None or spec.origin is None:
        if os.environ.get("CI"):
            pytest.fail("django-unfold is missing: pip install -e '.[dev]'")
        pytest.skip("needs django-unfold")
    return str(Path(spec.origin).parent.parent)


@pytest.fixture(scope="module")
def themed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a project with the theme, a schedule and a failed run."""
    place = folder_of_unfold()
    settings = 'INSTALLED_APPS.insert(0, "unfold"); MEDIA_ROOT = BASE_DIR / "media"'
    project = GuestProject(tmp_path_factory.mktemp("themed"), settings)
    project.environment["PYTHONPATH"] += f":{place}"
    project.migrated().python(MAKE)
    done = project.run("run_worker", "--max-runs", "1")
    assert done.returncode == 0, done.stdout
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    process = project.start("run_web", "--port", str(port))

    try:
        wait_for(lambda: answer("127.0.0.1", port, "/admin/login/") == 200, "the web server answers")
        yield address
    finally:
        end(process)


@pytest.fixture(scope="module", params=["light", "dark"])
def page(request: pytest.FixtureRequest, themed: str) -> Iterator[Page]:
    """A page of Chromium in a colour scheme, logged in."""
    path = chromium_path()
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("Chromium is missing. Debian: apt install chromium; or name one in CHROMIUM.")
        pytest.skip("needs Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        page = browser.new_context(base_url=themed, color_scheme=request.param).new_page()
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto("/admin/")
        page.fill("input[name=username]", "ada")
        page.fill("input[name=password]", "pw")
        page.press("input[name=password]", "Enter")
        page.get_by_role("link", name="Schedules").first.wait_for()
        yield page
        browser.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_under_the_theme(page: Page, name: str) -> None:
    response = page.goto(PAGES[name])
    assert response is not None
    assert response.status == 200
    page.wait_for_function("document.querySelector('html').getAttribute('x-cloak') === null")
    found: dict[str, Any] = page.evaluate(LOOK)
    assert found["inputs"] + found["buttons"] > 0
    faults = {key: found[key] for key in ("borderless", "touching", "bare", "faint", "wide") if found[key]}
    assert faults == {}


def test_a_list_has_the_button_for_a_new_row(page: Page) -> None:
    page.goto(PAGES["the list of schedules"])
    assert page.locator('a.addlink[href*="/scheduler/add/"]').is_visible()
