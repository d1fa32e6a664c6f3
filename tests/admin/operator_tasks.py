"""The tasks of an operator's day, with the clicks and page loads that each may cost, and the counter of both.

A task begins on the first page after the login, unless its name says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from playwright.sync_api import Locator, Page


@dataclass(frozen=True)
class Cost:
    clicks: int
    loads: int

    def __str__(self) -> str:
        return f"{self.clicks} / {self.loads}"


TASKS = {
    "a unhealthy, and why": (Cost(0, 0), "1 / 1, half"),
    "b why not at 03:00": (Cost(4, 4), "4 / 4, no answer"),
    "c a new schedule": (Cost(7, 2), "7 / 2"),
    "d pause five": (Cost(9, 3), "9 / 3"),
    "d resume five": (Cost(5, 3), "5 / 3"),
    "e run now with other params": (Cost(4, 4), "4 / 4"),
    "f follow and cancel, from the run": (Cost(2, 2), "2 / 2"),
    "g find the kinds of 300 failures": (Cost(2, 2), "2 / 2"),
    "g republish a kind with a canary, from the inbox": (Cost(4, 2), "4 / 2"),
    "g discard a kind, from the inbox": (Cost(2, 2), "2 / 2"),
    "h rerun a failure with other params": (Cost(5, 5), "5 / 5"),
    "i slow runs of last night": (Cost(2, 2), "not possible"),
    "j who changed what": (Cost(3, 3), "3 / 3"),
    "k republish one failure, from the inbox": (Cost(2, 2), "5 / 3"),
    "l CSV of a run, from its page": (Cost(1, 0), "1 / 0"),
    "l CSV of a run": (Cost(4, 3), "4 / 3"),
    "m load of the next 24 hours": (Cost(1, 1), "not possible"),
}
"""For each task: what it may cost, and what it cost before the pages were made for these tasks."""


class Clicks:
    """The clicks and loads since this object was made.

    A click is one click of the pointer, or the choice of one option. A load is one new document in the window; a
    download is none. Typing and keys are not counted.
    """

    def __init__(self, page: Page) -> None:
        page.wait_for_load_state()
        self.page = page
        self._clicks = self._loads = 0
        page.on("domcontentloaded", self._loaded)

    def _loaded(self, _page: Page) -> None:
        self._loads += 1

    def click(self, *targets: Locator) -> None:
        """Click each of the elements. If there are several of one kind, the first one is clicked."""
        for target in targets:
            self._clicks += 1
            target.first.wait_for()
            self.page.wait_for_load_state()  # a click that starts a download would stop the loading
            target.first.click()

    def choose(self, field: Locator, label: str) -> None:
        """Choose an option of a select box."""
        self._clicks += 1
        field.select_option(label=label)

    def cost(self) -> Cost:
        """What the task has cost. The page must have loaded what the last click has opened."""
        self.page.wait_for_load_state()
        return Cost(self._clicks, self._loads)


@dataclass
class Table:
    """The lines of all tasks."""

    lines: list[tuple[str, Cost, Cost, str]] = field(default_factory=list)

    def add(self, task: str, cost: Cost, allowed: Cost, before: str) -> None:
        self.lines.append((task, cost, allowed, before))

    def __str__(self) -> str:
        head = ("task", "clicks / loads", "allowed", "before")
        rows = [head, *((task, str(cost), str(most), before) for task, cost, most, before in sorted(self.lines))]
        return "\n".join(f"{task:<52}{cost:<16}{most:<9}{before}" for task, cost, most, before in rows)


FirstPage = Callable[[], Page]
Counted = Callable[[Page, str], AbstractContextManager[Clicks]]
