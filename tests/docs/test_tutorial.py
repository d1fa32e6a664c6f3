"""The tutorial is followed word by word: its blocks are used as they stand, and its buttons are pressed in a browser.

Only its calls of pip are left out, because the packages are here already.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.admin.chromium import ARGUMENTS, chromium_path
from tests.docs.pages import DOCS
from tests.support import ROOT, wait_for

pytestmark = [
    pytest.mark.any_database,
    pytest.mark.browser,
    pytest.mark.processes,
    pytest.mark.skipif(chromium_path() is None and "CI" not in os.environ, reason="no Chromium"),
]

TEXT = (DOCS / "tutorial.md").read_text()
INSTALL, APPS, MEDIA, CHECK, WORKER, START, MEND, TERMINAL, UNIT, TEST = (
    block for _kind, block in re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)[1:]
)


class Reader:
    """A person with a terminal in the folder of the project."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        own = ("DJANGO_SETTINGS_MODULE", "CRON_", "DATABASE_URL", "BROKER_URL", "LOG_")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        self.environment |= {"PYTHONPATH": str(ROOT), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def types(self, block: str) -> str:
        """Type the commands of a block. Return what they print."""
        lines = re.findall(r"^\$ (.*)", block, re.MULTILINE) or block.splitlines()
        code = "\n".join(line for line in lines if not line.startswith((". .venv", "pip ")))
        done = subprocess.run(
            ["bash", "-ec", code], cwd=self.folder, env=self.environment, check=False, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def edits(self) -> None:
        """Change the settings, as section 1 says."""
        file = self.folder / "shop" / "settings.py"
        apps = "".join(f'    "{name}",\n' for name in re.findall(r'"(\w+)"', APPS))
        text = re.sub(r"(INSTALLED_APPS = \[\n)(.*?)\]", rf"\1\2{apps}]", file.read_text(), flags=re.DOTALL)
        text = re.sub(r"^(BASE_DIR = .*\n)", lambda line: line[0] + MEDIA, text, flags=re.MULTILINE)
        # A wheel has the templates inside of its app; here they are beside it.
        file.write_text(text.replace("'DIRS': []", f"'DIRS': [{str(ROOT / 'templates')!r}]"))


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    """Provide a reader with a new project."""
    found = Reader(tmp_path)
    for command in ("django-admin startproject shop .", "python manage.py startapp orders"):
        assert command in TEXT
        found.types(command)
    return found


@pytest.fixture
def site(reader: Reader, free_port: int) -> Iterator[list[str]]:
    """Start `up` as section 3 says. Provide the address, the user and the password that it prints."""
    reader.edits()
    assert "no issues" in reader.types(CHECK)
    (reader.folder / "orders" / "workers.py").write_text(WORKER)
    command = START.splitlines()[0].removeprefix("$ ").split()
    log = reader.folder / "up.log"
    with log.open("w") as file:
        arguments = [sys.executable, *command[1:], "--port", str(free_port)]
        up = subprocess.Popen(arguments, cwd=reader.folder, env=reader.environment, stdout=file, stderr=file)
    try:
        wait_for(lambda: "Ctrl-C stops everything" in log.read_text(), "up has started")
        yield [
            re.search(rf"^  {word} +(\S+)", log.read_text(), re.MULTILINE)[1] for word in ("Open", "User", "Password")
        ]  # type: ignore[index]
    finally:
        up.send_signal(signal.SIGINT)
        up.wait(60)


@pytest.fixture
def page(site: list[str]) -> Iterator[Page]:
    """Provide a browser that has signed in."""
    address, user, password = site
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=ARGUMENTS)
        found = browser.new_page(viewport={"width": 1440, "height": 900})
        found.goto(address)
        found.get_by_label("Username").fill(user)
        found.get_by_label("Password").fill(password)
        found.get_by_role("button", name="Log in").click()
        expect(found.get_by_role("heading", name="Dashboard")).to_be_visible()
        yield found
        browser.close()


def opens(page: Page, name: str) -> None:
    """Open a page in the list on the left."""
    assert f"**{name}**" in TEXT
    page.locator("#nav-sidebar").get_by_role("link", name=name, exact=True).click()


def presses(page: Page, name: str, where: str = "#content") -> None:
    """Press what the text names, a link or a button."""
    assert f"**{name}**" in TEXT
    found = page.locator(where)
    found.get_by_role("link", name=name).or_(found.get_by_role("button", name=name)).first.click()


def test_the_tutorial_is_followed_to_its_end(reader: Reader, page: Page) -> None:
    opens(page, "Workers")
    presses(page, "import_orders")
    presses(page, "Run once")
    presses(page, "Run once")
    expect(page.locator("#content")).to_contain_text("Attempt 2 failed: FileNotFoundError")
    opens(page, "Failed inbox")
    expect(page.locator("#result_list tbody tr")).to_have_count(1)
    reader.types(MEND)
    presses(page, "Republish", "#result_list")
    presses(page, "Republish")
    opens(page, "Executions")
    page.locator("#result_list tbody").get_by_role("link").first.click()
    for words in ("Attempt 3 succeeded", "order 1001.json", "order 1002.json"):
        expect(page.locator("#content")).to_contain_text(words)
    opens(page, "Workers")
    presses(page, "import_orders")
    presses(page, "Add a schedule for it")
    page.get_by_label("Schedule:", exact=True).fill("* * * * *")
    expect(page.locator("#content")).to_contain_text("Every minute")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".messagelist, .success").first).to_be_visible()
    assert "* * * * *" in reader.types(TERMINAL)
    (reader.folder / "orders" / "tests.py").write_text(UNIT)
    assert "OK" in reader.types(TEST)
