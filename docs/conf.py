"""Sphinx builds the site from the same pages that GitHub shows: `make docs`. A warning is an error.

The files of the folder above, such as CHANGELOG.md, are pages of the site, too: a stub here names each of them.
"""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

ROOT = Path(__file__).parent.parent

project = "cronsite"
author = "the cronsite contributors"
release = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]  # type: ignore[index]
html_title = f"cronsite {release}"

extensions = ["myst_parser"]
exclude_patterns = ["llms.txt"]
html_theme = "furo"
html_extra_path = ["llms.txt"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
highlight_language = "none"
nitpicky = True

myst_heading_anchors = 4
ABOVE = {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md", "security-policy": "SECURITY.md"}
"""The pages of the site that stand in the folder above: the name of the stub, and the file."""


def read_above(_app: Sphinx, name: str, source: list[str]) -> None:
    """Put the file above in the place of its stub, and lead links to such a file to its page of the site."""
    up = "../" * name.count("/")
    if name in ABOVE:
        text = (ROOT / ABOVE[name]).read_text()
        source[0] = re.sub(r"\]\(docs/", "](", text)
        for page, file in ABOVE.items():
            source[0] = source[0].replace(f"]({file}", f"]({page}.md")
    for page, file in ABOVE.items():
        source[0] = source[0].replace(f"]({up}../{file}", f"]({up}{page}.md")


def name_pages(_app: Sphinx, name: str, source: list[str]) -> None:
    """Give links whose text is the name of a file, as GitHub's readers know it, the title of its page."""
    folder = (ROOT / "docs" / name).parent

    def titled(link: re.Match[str]) -> str:
        file = folder / link["file"]
        page = ROOT / ABOVE[file.stem] if file.stem in ABOVE else file
        lines = page.read_text().splitlines()
        title = next((line.removeprefix("# ") for line in lines if line.startswith("# ")), None)
        return f"[{title or link['text']}]({link['file']}{link['rest'] or ''})"

    source[0] = re.sub(r"\[(?P<text>[\w/.-]+\.md)\]\((?P<file>[\w/.-]+\.md)(?P<rest>#[\w-]+)?\)", titled, source[0])


def note_external_links(app: Sphinx, tree: nodes.document, _name: str) -> None:
    """Collect the addresses that lead out of the site."""
    for reference in tree.findall(nodes.reference):
        if re.match(r"[a-z]+:", address := reference.get("refuri", "")):
            app.env.external_links.add(address)  # type: ignore[attr-defined]


def write_external_links(app: Sphinx, error: Exception | None) -> None:
    """Write the list of them. They are not fetched."""
    if error is None:
        lines = "".join(f"{address}\n" for address in sorted(app.env.external_links))  # type: ignore[attr-defined]
        (Path(app.outdir) / "external-links.txt").write_text(lines)


def setup(app: Sphinx) -> None:
    """Connect the functions of this file."""
    for plain in ("cron", "mermaid"):  # GitHub draws the diagram
        app.add_lexer(plain, TextLexer)
    app.connect("builder-inited", lambda app: setattr(app.env, "external_links", set()))
    app.connect("source-read", read_above)
    app.connect("source-read", name_pages)
    app.connect("doctree-resolved", note_external_links)
    app.connect("build-finished", write_external_links)
