"""The pictures of docs/pictures.md: `python -m tests.admin.screenshots docs/images --docs`. Each is below 150 kB."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page

SIZE = (1024, 768)

CUTS = {
    "failedexecution_changelist": ("inbox", "#container", 768),
    "schedulerexecution_change-running": ("run", "#container", 930),
    "schedule-what-changes": ("schedule", "fieldset:has(input[name=schedule])", 985),
}
"""The name of a scene, the name of its picture, the part of the page, and the greatest height of the picture."""


def cut(page: Page, scene: str, folder: Path) -> None:
    """Write the picture of a scene that the page shows."""
    name, part, height = CUTS[scene]
    page.set_viewport_size({"width": SIZE[0], "height": SIZE[1]})
    page.emulate_media(color_scheme="light")
    page.evaluate("window.scrollTo(0, 0)")
    box = page.locator(part).bounding_box()
    assert box is not None
    area = {"x": box["x"], "y": box["y"], "width": box["width"], "height": min(box["height"], height)}
    page.screenshot(path=folder / f"{name}.png", clip=area, full_page=True)  # type: ignore[arg-type]
