"""Writes one PNG for each kind of page, size and colour scheme: `python -m tests.admin.screenshots FOLDER`.

The script fills an SQLite database of its own with an invented installation, and serves the site on a free port. The
option `--only WORD` takes the pages whose names contain the word. It can be given several times. The option `--docs`
writes the pictures of docs/pictures.md; the one of the dashboard is that of a first start. The option `--language de`
takes the pages in German, and writes the text of each page beside its pictures.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.site import enter

SIZES = [(1440, 900), (1024, 768), (390, 844)]
SCHEMES = ("light", "dark")


def main() -> int:
    """Set up the site, take the pictures and print how many there are."""
    parser = argparse.ArgumentParser(prog="python -m tests.admin.screenshots")
    parser.add_argument("folder", type=Path, help="where the pictures are written")
    parser.add_argument("--only", action="append", default=[], metavar="WORD", help="only pages with this word")
    parser.add_argument("--docs", action="store_true", help="the pictures of docs/pictures.md, and no others")
    parser.add_argument("--language", default="en-us", help="the language of the pages")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="screenshots-") as name:
        enter(
            Path(name),
            EXTRA_APPS="tests.apps.shop",
            DJANGO_ALLOW_ASYNC_UNSAFE="1",
            ENV_FILE=os.devnull,
            LOG_LEVEL="CRITICAL",
            LANGUAGE_CODE=options.language,
        )
        if options.docs:
            from tests.admin.screenshots.first_start import take_first_start

            take_first_start(options.folder)
        print(f"{take(options.folder, options.only, options.docs, options.language)} pictures in {options.folder}")  # noqa: T201 - a script
    return 0


def take(folder: Path, words: list[str], for_docs: bool, language: str) -> int:
    """Take a picture of each scene in each size and colour scheme. Return the number of pictures.

    Args:
        words: if there are any, only scenes whose names contain one of them.
        for_docs: one picture of each scene that the docs show, instead of all.
        language: the language of the browser. In each other one than English, the texts of the pages are written, too.
    """
    from django.contrib.auth.models import User
    from django.utils import timezone as clock
    from playwright.sync_api import sync_playwright
    from pytest_django.live_server_helper import LiveServer

    from tests.admin.axe import NO_TRANSITIONS
    from tests.admin.chromium import ARGUMENTS, chromium_path
    from tests.admin.conftest import logged_in
    from tests.admin.screenshots.docs import CUTS, cut
    from tests.admin.screenshots.present import keep_alive, store_installation
    from tests.admin.screenshots.scenes import Scene, every_page, further_scenes
    from tests.factories import PASSWORD

    logging.disable(logging.ERROR)  # Django would log each address that answers 403 or 404
    began = clock.now()
    rows = store_installation(began)
    client = logged_in(User.objects.get(username="anna"))
    client.defaults["SERVER_NAME"] = "localhost"
    scenes = [*every_page(rows, client), *further_scenes()]
    if for_docs:
        scenes = [scene for scene in scenes if scene.name in CUTS]
    elif words:
        scenes = [scene for scene in scenes if any(word in scene.name for word in words)]
    server, count = LiveServer("localhost"), 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=ARGUMENTS)
        context = browser.new_context(
            base_url=server.url, locale=language, timezone_id="Europe/Berlin", bypass_csp=True
        )
        page = context.new_page()
        page.goto("/admin/")
        scenes.insert(0, Scene("login", page.url))
        for number, scene in enumerate(scenes):
            keep_alive(began, clock.now())
            page.set_viewport_size({"width": SIZES[0][0], "height": SIZES[0][1]})
            page.goto(scene.path)
            page.wait_for_function("() => !document.querySelector('.dash-slot:empty')")
            scene.steps(page)
            page.add_style_tag(content=NO_TRANSITIONS)
            _write_text(page, folder / f"{scene.name}.txt", language)
            if for_docs and number:
                cut(page, scene.name, folder)
                count += 1
            for width, height in [] if for_docs else SIZES:
                page.set_viewport_size({"width": width, "height": height})
                for scheme in SCHEMES:
                    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                    page.screenshot(path=folder / f"{scene.name}-{width}-{scheme}.png", full_page=True)
                    count += 1
            if not number:
                _log_in(page, PASSWORD)
        browser.close()
    server.stop()
    return count


def _write_text(page: Any, file: Path, language: str) -> None:
    """Write the text of a page that is not in English, so that English words can be searched for."""
    if not language.startswith("en"):
        file.write_text(page.inner_text("body"))


def _log_in(page: Any, password: str) -> None:
    page.locator("[name=username]").fill("anna")
    page.locator("[name=password]").fill(password)
    page.locator("[type=submit]").click()
    page.wait_for_url("**/dashboard/")


if __name__ == "__main__":
    sys.exit(main())
