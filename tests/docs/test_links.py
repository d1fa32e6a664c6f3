"""Each page is in the table of contents, and each link leads somewhere: on GitHub, and for language models."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import pages
from tests.support import ROOT

LLMS = pages.DOCS / "llms.txt"

NOT_FOR_USE = {"contributing.md", "changelog.md", "security-policy.md", "index.md"}
"""Stubs of the site and its first page: README.md names the files themselves."""


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", [*pages.pages(), *pages.ABOVE, LLMS], ids=name)
def test_each_link_leads_somewhere(path: Path) -> None:
    assert [found for link in pages.links(path) if (found := pages.problem(path, link))] == []


def test_each_page_is_in_a_table_of_contents() -> None:
    outside = set(pages.pages()) - pages.listed(pages.DOCS / "index.md")
    assert sorted(map(name, outside)) == [], "Name it in a toctree of docs/index.md."


def test_a_page_outside_of_all_tables_and_a_dead_link_are_found(tmp_path: Path) -> None:
    index = tmp_path / "index.md"
    index.write_text("# Index\n\n```{toctree}\n:hidden:\n\none\npart/*\n```\n")
    (tmp_path / "part").mkdir()
    for page in ("one", "two", "part/three"):
        (tmp_path / f"{page}.md").write_text("# A `word`, and *more*\n\n## Twice\n\n## Twice\n")
    assert {path.stem for path in pages.listed(index)} == {"index", "one", "three"}
    one = tmp_path / "one.md"
    right = ("two.md", "two.md#a-word-and-more", "#twice-1", "part/three.md#twice", "https://example.com")
    assert [pages.problem(one, link) for link in right] == [""] * len(right)
    wrong = ("four.md", "two.md#nowhere", "#twice-2", "http://example.com")
    assert all(pages.problem(one, link) for link in wrong)


@pytest.mark.parametrize("path", [ROOT / "README.md", LLMS], ids=name)
def test_the_lists_of_pages_name_each_page_for_users(path: Path) -> None:
    linked = {(path.parent / link.partition("#")[0]).resolve() for link in pages.links(path)}
    wanted = {page for page in pages.pages() if page.parent == pages.DOCS and page.name not in NOT_FOR_USE}
    if path == LLMS:
        wanted -= {page for page in wanted if page.name.startswith("original-contract") or page.name == "pictures.md"}
    wanted -= {pages.DOCS / "original-contract-map.md"}  # original-contract.md links to it
    assert sorted(map(name, wanted - linked)) == []


def test_pictures_are_small_and_each_is_shown() -> None:
    shown = {(page.parent / link).resolve() for page in pages.pages() for link in pages.links(page)}
    pictures = list((pages.DOCS / "images").iterdir())
    assert len(pictures) >= 4
    assert [path.name for path in pictures if path not in shown] == []
    assert [path.name for path in pictures if path.stat().st_size > 150_000] == []
