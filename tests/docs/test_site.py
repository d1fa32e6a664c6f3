"""The site of the documentation is built without a warning, and each place in it that a link names exists."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.support import ROOT

if "CI" not in os.environ:
    pytest.importorskip("sphinx", reason="pip install -e '.[docs]'")

pytestmark = pytest.mark.any_database


def build(source: Path, target: Path) -> subprocess.CompletedProcess[str]:
    """Build a site. The exit code is not 0 if there is a warning."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", str(ROOT / "docs")]
    return subprocess.run([*command, str(source), str(target)], check=False, capture_output=True, text=True, cwd=ROOT)


def places(page: Path) -> set[str]:
    """The ids of a page."""
    return {unescape(name) for name in re.findall(r'\bid="([^"]+)"', page.read_text())}


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """One test, so that the site is built once also by several processes of pytest."""
    done = build(ROOT / "docs", tmp_path)
    assert done.stderr == ""
    assert done.returncode == 0
    check_links(tmp_path)
    check_pages_of_the_folder_above(tmp_path)
    check_addresses_outside(tmp_path)


def check_links(site: Path) -> None:
    """Each link leads to a page or a file, and to a place in it."""
    found = {page: places(page) for page in site.rglob("*.html")}
    looked, dead = 0, []
    for page in found:
        text = re.sub(r"<script.*?</script>", "", page.read_text(), flags=re.DOTALL)
        for link in map(unescape, re.findall(r'<(?:a|img)\b[^>]*?\b(?:href|src)="([^"]+)"', text)):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = Path(os.path.normpath(page.parent / unquote(name))) if name else page
            looked += 1
            is_place = not anchor or target.suffix != ".html" or unquote(anchor) in found.get(target, ())
            if not target.exists() or not is_place:
                dead.append(f"{page.relative_to(site)}: {link}")
    assert looked > 5_000
    assert dead == []


def check_pages_of_the_folder_above(site: Path) -> None:
    """The files above `docs` are pages, links lead to them, and the list for language models is a file."""
    assert "How words are written" in (site / "contributing.html").read_text()
    assert "All notable changes" in (site / "changelog.html").read_text()
    assert 'href="security-policy.html"' in (site / "security.html").read_text()
    assert (site / "llms.txt").read_text() == (ROOT / "docs" / "llms.txt").read_text()


def check_addresses_outside(site: Path) -> None:
    """They are listed, and not fetched."""
    listed = (site / "external-links.txt").read_text().splitlines()
    assert "https://healthchecks.io/docs/http_api/" in listed
    assert all(address.startswith("https://") for address in listed)


def test_mistakes_on_a_page_fail_the_build(tmp_path: Path) -> None:
    mistakes = {
        "[two](two.md#nowhere)": "local id not found",
        "[three](three.md)": "cross-reference target not found",
        "![picture](none.png)": "image file not readable",
        "A note.[^none]": 'Unknown target name: "none"',
        "```{unknown}\n```": "Unknown directive type",
    }
    (tmp_path / "index.md").write_text("# Index\n\n```{toctree}\none\ntwo\n```\n")
    (tmp_path / "one.md").write_text("# One\n\n" + "\n\n".join(mistakes))
    (tmp_path / "two.md").write_text("# Two\n")
    done = build(tmp_path, tmp_path / "_site")
    assert done.returncode != 0
    assert [warning for warning in mistakes.values() if warning not in done.stderr] == []


def test_a_page_in_no_table_of_contents_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "index.md").write_text("# Index\n")
    (tmp_path / "lost.md").write_text("# Lost\n")
    done = build(tmp_path, tmp_path / "_site")
    assert done.returncode != 0
    assert "isn't included in any toctree" in done.stderr
