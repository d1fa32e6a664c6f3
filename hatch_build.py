"""The part of the package's metadata that needs the address of the repository: its links, and those of the README.

The README links to files of the repository. A package page has no such files. With an address in pyproject.toml
(`[tool.hatch.metadata.hooks.custom]`), each link becomes absolute. Without one, a link becomes its text, and a picture
is left out, so that the page has no link that leads nowhere.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"!\[([^\]]*)\]\((?!https?:)([^)\s]+)\)\n*")
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:)([^)\s]+)\)")
"""Links to files of the repository, or to a heading of the page."""


class PackagePage(MetadataHookInterface):
    """Sets `readme` and `urls`, which pyproject.toml declares as dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Read README.md, and add what a package page shows."""
        address = str(self.config.get("repository", "")).rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": page(text, address)}
        metadata["urls"] = urls(address)


def urls(address: str) -> dict[str, str]:
    """The links beside the page, by the names that package indexes know; none without an address."""
    if not address:
        return {}
    return {
        "Homepage": address,
        "Documentation": f"{address}/tree/main/docs",
        "Source": address,
        "Changelog": f"{address}/blob/main/CHANGELOG.md",
        "Issues": f"{address}/issues",
        "Security": f"{address}/security",
    }


def page(text: str, address: str) -> str:
    """The README as a package page shows it.

    Args:
        address: of the repository, without a slash at its end; empty if it has none.
    """
    if not address:
        return LINK.sub(r"\1", PICTURE.sub("", text))
    text = PICTURE.sub(rf"![\1]({address}/raw/main/\2)\n\n", text)
    return LINK.sub(lambda link: f"[{link[1]}]({_absolute(link[2], address)})", text)


def _absolute(target: str, address: str) -> str:
    return f"{address}#{target[1:]}" if target.startswith("#") else f"{address}/blob/main/{target}"
