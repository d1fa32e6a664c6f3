"""The pages of the documentation: their headings, links and tables of contents, as GitHub reads them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from tests.support import ROOT

DOCS = ROOT / "docs"

ABOVE = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]

_FENCE = re.compile(r"^( *)(`{3,}).*?^ *\2 *$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\(<?([^)>\s]+)>?\)")
_TOC = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """Each page of the site."""
    return sorted(DOCS.rglob("*.md"))


def prose(path: Path) -> str:
    """The text of a page without its blocks of code."""
    return _FENCE.sub("", path.read_text())


def links(path: Path) -> list[str]:
    """The targets of the links and pictures of a page."""
    return _LINK.findall(_CODE.sub("", prose(path)))


@cache
def anchors(path: Path) -> frozenset[str]:
    """The anchors that GitHub gives to the headings of a page. A heading that comes again gets a number."""
    found: dict[str, int] = {}
    names = set()
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", prose(path), re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
        names.add(f"{name}-{found[name]}" if found[name] else name)
    return frozenset(names)


def problem(path: Path, link: str) -> str:
    """What is wrong with a link of a page; empty if it leads somewhere, or out of the repository."""
    if re.match(r"[a-z]+:", link):
        return "" if link.startswith(("https://", "mailto:")) else f"{link}: not https"
    name, _, anchor = link.partition("#")
    target = (path.parent / name).resolve() if name else path
    if not target.exists():
        return f"{link}: no such file"
    if anchor and anchor not in anchors(target):
        return f"{link}: no such heading"
    return ""


def listed(start: Path) -> set[Path]:
    """The pages that a table of contents reaches, from a page on. The page itself is one of them."""
    reached, left = {start}, [start]
    while left:
        page = left.pop()
        for block in _TOC.findall(page.read_text()):
            for entry in (line for line in block.splitlines() if line and not line.startswith(":")):
                for child in sorted(page.parent.glob(f"{entry}.md")):
                    if child not in reached:
                        reached.add(child)
                        left.append(child)
    return reached
