"""The picture of the dashboard, less than a minute after the first start of `up` in an empty folder."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.admin.chromium import ARGUMENTS, chromium_path
from tests.support import ROOT

SIZE = (1440, 900)
WAIT_SECONDS = 45
"""After so long, a run of the demo has failed for good, one is in progress, and others are over."""


def take_first_start(folder: Path) -> None:
    """Write `dashboard.png`."""
    with tempfile.TemporaryDirectory(prefix="first-start-") as name:
        kept = {key: value for key, value in os.environ.items() if key in {"PATH", "HOME", "LANG"}}
        environment = {**kept, "DATA_DIR": name, "ENV_FILE": os.devnull, "PYTHONUNBUFFERED": "1"}
        log = Path(name) / "up.log"
        with log.open("w") as out:
            command = [sys.executable, "manage.py", "up", "--port=8400"]
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=out)
        try:
            _take(*_welcome(log), folder / "dashboard.png")
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def _welcome(log: Path) -> tuple[str, str]:
    """The address and the password that `up` prints."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = re.search(r"Open +(\S+)\n.*?Password +(\S+)", log.read_text(), re.DOTALL)
        if found:
            return found[1], found[2]
        time.sleep(0.5)
    raise AssertionError(log.read_text())


def _take(address: str, password: str, file: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=ARGUMENTS)
        page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]}, color_scheme="light")
        page.goto(address)
        page.locator("[name=username]").fill("admin")
        page.locator("[name=password]").fill(password)
        page.locator("[type=submit]").click()
        page.wait_for_timeout(WAIT_SECONDS * 1_000)
        page.reload()
        page.wait_for_function("() => !document.querySelector('.dash-slot:empty')")
        page.screenshot(path=file)
        browser.close()
