"""docs/configuration.md names each setting with the default and the bounds of the code."""

from __future__ import annotations

import pytest
from django.test import override_settings

from scheduling import conf
from scheduling.core import setting_values as read
from tests.docs import settings_table


def rows() -> dict[str, list[str]]:
    """The cells of each row, by the name of the setting."""
    found = settings_table.TABLE.search(settings_table.PAGE.read_text())
    assert found is not None
    lines = found[0].removeprefix(settings_table.HEAD).splitlines()
    cells = ([cell.strip() for cell in settings_table.CELLS.split(line)[1:-1]] for line in lines)
    return {settings_table.setting(name): rest for name, *rest in cells}


def test_the_page_is_what_the_code_says() -> None:
    page = settings_table.PAGE.read_text()
    assert settings_table.written(page) == page, "Run: make settings-table"


def test_each_setting_has_a_default_bounds_and_a_meaning() -> None:
    found = rows()
    assert set(conf.NAMES) - set(found) == set()
    assert [name for name, cells in found.items() if len(cells) != 3 or not all(cells)] == []


def test_each_command_of_the_default_list_is_named() -> None:
    row = " ".join(rows()["CRON_COMMANDS"])
    assert [command for command in conf.DEFAULT_COMMANDS if command not in row] == []


def test_names_that_the_code_does_not_read_are_known() -> None:
    others = {name for name in rows() if name not in conf.NAMES}
    assert {name for name in others if not name.startswith(("CRON_CHAT_", "CRON_PING_", "LOG_"))} == set()


def test_a_wrong_default_a_wrong_bound_and_a_new_setting_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    page = settings_table.PAGE.read_text()
    wrong = page.replace("| 15 | 3-3 600 |", "| 16 | 2-3 600 |")
    assert wrong != page
    assert settings_table.written(wrong) == page
    monkeypatch.setitem(conf._READERS, "CRON_NEW", ("lease_seconds", read.integer(3, 4_000)))
    monkeypatch.setattr(conf, "NAMES", (*conf.NAMES, "CRON_NEW"))
    assert "| `CRON_NEW` | 15 | 3-4 000 | |\n" in settings_table.written(page)


@pytest.mark.parametrize(
    "name", ["CRON_LEASE_SECONDS", "CRON_RETENTION_KEEP", "CRON_API_PER_MINUTE", "CRON_MAX_RETRIES"]
)
def test_the_bounds_on_the_page_are_those_that_are_checked(name: str) -> None:
    low, high = (int(word.replace(" ", "")) for word in rows()[name][1].split("-"))
    for value, is_refused in ((low - 1, True), (low, False), (high, False), (high + 1, True)):
        with override_settings(**{name: value}):
            assert bool([text for text in conf.problems() if name in text]) == is_refused, value
