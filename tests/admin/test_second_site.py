"""On the pages of a second AdminSite, no link, form, script or redirect leads to the default site."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from scheduling.admin.ui.links import addresses_on, execution_url
from tests.admin.addresses import Address, every_address
from tests.admin.rows import Rows, one_of_each
from tests.admin.walk import TYPED, press_all, text_of, undone
from tests.factories import WorkerFactory

pytestmark = [pytest.mark.slow, pytest.mark.any_database]  # where a link leads does not depend on the database

DEFAULT_SITE_URL = re.compile(r"(?<![\w/.-])/admin/[^\s\"'<>\\]*")
"""A regular expression that matches a URL of the default site in HTML, JSON or a header."""


@pytest.fixture
def rows(db: None, settings: Any, tmp_path: Path) -> Rows:
    """Rows of each model that has pages, in a project with two admin sites."""
    settings.ROOT_URLCONF = "tests.admin.two_sites"
    settings.MEDIA_ROOT = tmp_path
    return one_of_each()


@pytest.fixture
def addresses(rows: Rows) -> list[Address]:
    """The URLs of all pages of the second site."""
    return [address for address in every_address(rows, "ops") if address.own]


def urls_text(response: Any) -> str:
    """Return the parts of a response that can hold URLs: the redirect's target and the body."""
    return f"{response.get('Location', '')} {text_of(response)}"


def test_no_page_links_to_the_default_site(editor: Client, addresses: list[Address]) -> None:
    grouped = "/ops/scheduling/failedexecution/?group=error"
    found = dict[str, list[str]]()
    for path in [*(address.path for address in addresses), grouped]:
        with undone():
            response = editor.get(path)
            text = urls_text(response)
        found[path] = DEFAULT_SITE_URL.findall(text)
        if response.status_code == 200 and "<body" in text:
            assert "/ops/" in text, path
    assert {path: away for path, away in found.items() if away} == {}
    assert {address.path.split("/")[1] for address in addresses} == {"ops"}
    assert len(found) > 100


def test_no_button_leads_to_the_default_site(editor: Client, rows: Rows, addresses: list[Address]) -> None:
    typed = {
        **TYPED,
        "scheduling_scheduler_add": {"worker": str(WorkerFactory().pk), "schedule": "0 9 * * *"},
        "scheduling_worker_changelist": {"_selected_action": [rows["worker"][0].pk]},
    }
    pressed = press_all(editor, addresses, typed)
    assert len(pressed) > 25
    for key, (post, _changes) in pressed.items():
        assert post.path.startswith("/ops/"), key
        with undone():
            response = editor.post(post.path, post.data)
            assert DEFAULT_SITE_URL.findall(urls_text(response)) == [], key
            if response.status_code == 302:  # the next page links to the new row
                assert DEFAULT_SITE_URL.findall(urls_text(editor.get(response["Location"]))) == [], key


def test_the_default_site_keeps_its_own_addresses(editor: Client, rows: Rows) -> None:
    for site in ("ops", "admin", "ops"):
        response = editor.get(f"/{site}/scheduling/schedulerexecution/")
        assert f'href="/{site}/scheduling/scheduler/{rows["scheduler"][0].pk}/change/"' in response.content.decode()
        # Outside a request, `execution_url` returns a URL of the default site.
        assert execution_url(1) == "/admin/scheduling/schedulerexecution/1/change/"


def test_after_an_error_urls_belong_to_the_default_site(rows: Rows) -> None:
    def fails() -> None:
        with addresses_on("ops"):
            assert execution_url(1) == "/ops/scheduling/schedulerexecution/1/change/"
            raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        fails()
    assert execution_url(1).startswith("/admin/")
