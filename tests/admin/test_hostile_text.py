"""Every page must show hostile text as plain text. SQL or a broken handler can write such text into any column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, User
from django.db import connection, models

from scheduling.management.groups import make_groups
from tests.admin.addresses import OWN, every_address
from tests.admin.conftest import logged_in
from tests.admin.rows import one_of_each
from tests.admin.walk import text_of, undone
from tests.factories import OutputFactory, SchedulerExecutionFactory, UserFactory
from tests.server_share import shared_pages

pytestmark = pytest.mark.slow

MARKUP = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'><b>"
CONTROLS = "\x1b[31m\x07\x9b2J\u202egnp.exe\u2066\u200b\ufeff"
NUL = "" if connection.vendor == "postgresql" else "\x00"
"""The NUL character. PostgreSQL cannot store this character, so the constant is empty there."""
SURROGATE = "\ud800" if connection.vendor == "sqlite" else ""
"""Half of a surrogate pair. Only SQLite accepts half a pair in JSON, so the constant is empty on other databases."""
HOSTILE = MARKUP + CONTROLS + NUL
LONG = HOSTILE + "wide" * 250_000
"""A hostile text of about a million characters."""

KEPT = {
    "state", "type", "queue", "trigger", "kind", "outcome",  # these values decide what a page shows
    "file", "password", "schedule", "timezone", "language", "controller", "name", "execution_key", "codename",
    "key", "channel",
}  # fmt: skip
"""Columns that `spoil` does not change, because pages depend on their values.

The fixture `paths` fills some of these columns with hostile text, but only in the targets and in the second schedule.
"""

HIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")

MOST = 1_000_000
"""The maximum length of a page in characters. Form fields do not count, because they must hold whole values."""


def spoil() -> None:
    """Write hostile text into every text column of every row of this project's tables, without any validation."""
    for model in [*apps.get_models(), User, Group, LogEntry]:
        if model._meta.app_label not in OWN and model not in (User, Group, LogEntry):
            continue
        if not model._meta.managed or model._meta.proxy:
            continue
        for pk in list(model._base_manager.values_list("pk", flat=True)):
            values = {
                field.name: value
                for field in model._meta.concrete_fields
                if field.name not in KEPT and (value := _hostile(field, pk)) is not None
            }
            model._base_manager.filter(pk=pk).update(**values)


def _hostile(field: models.Field, pk: Any) -> Any:
    if isinstance(field, models.JSONField):
        return {f"{HOSTILE}{pk}": HOSTILE + SURROGATE, "long": LONG, "deep": [[[{HOSTILE: HOSTILE}]]]}
    if isinstance(field, models.UUIDField) or not isinstance(field, (models.CharField, models.TextField)):
        return None
    if field.unique:
        return f"{pk} {HOSTILE}"[: field.max_length]
    text = f"{HOSTILE}{pk} {LONG}" if field.max_length is None else f"{HOSTILE}{pk}".ljust(field.max_length, "w")
    return text[: field.max_length] if field.max_length else text


@pytest.fixture
def paths(db: None, settings: Any, tmp_path: Path) -> list[str]:
    """The paths of all pages of this project. The rows on these pages hold hostile text."""
    settings.MEDIA_ROOT = tmp_path
    rows = one_of_each()
    scheduler, second = rows["scheduler"]
    for state in ("claimed", "cancelled", "discarded", "skipped"):
        SchedulerExecutionFactory(scheduler=scheduler, **{state: True})
    unreadable = SchedulerExecutionFactory(scheduler=None, failed=True)
    type(unreadable).objects.filter(pk=unreadable.pk).update(type="")
    type(scheduler)._base_manager.filter(pk=scheduler.pk).update(user=UserFactory())
    OutputFactory(
        execution=rows["schedulerexecution"][2], sequence=10_000, text=f"2026-03-10T12:00:00.000Z WARN {LONG}\n" * 3
    )
    LogEntry.objects.log_actions(UserFactory().pk, [scheduler, rows["schedulerexecution"][2]], 2, "said")
    spoil()
    names = {"worker": "name", "reminder": "name", "channel": "name", "calendar": "name", "report": "controller"}
    for model, column in names.items():
        row = rows[model][0]
        type(row)._base_manager.filter(pk=row.pk).update(**{column: HOSTILE[:100]})
    columns = {"schedule": HOSTILE, "timezone": HOSTILE[:64], "language": HOSTILE[:8], "status": True}
    type(second)._base_manager.filter(pk=second.pk).update(**columns)
    addresses = [address for address in every_address(rows) if address.own or address.name in ("index", "app_list")]
    return sorted({address.path for address in shared_pages(addresses, lambda one: one.name)})


def faults(page: str) -> Iterator[str]:
    """Yield a description of each fault: HTML from a hostile text, a hidden character, or a page that is too long."""
    soup = BeautifulSoup(page, "html.parser")
    if soup.find("img", onerror=True) or any("alert(" in (script.string or "") for script in soup.find_all("script")):
        yield "markup"
    for field in soup.find_all(["textarea", "input"]):
        field.decompose()
    shown = str(soup)
    if found := HIDDEN.search(shown):
        yield f"{found[0]!r} in {shown[max(found.start() - 150, 0) : found.start() + 30]!r}"
    if len(shown) > MOST:
        yield f"{len(shown)} characters"


@pytest.mark.parametrize("who", ["editor", "viewer"])
def test_hostile_text_is_escaped_on_every_page(who: str, paths: list[str]) -> None:
    client = logged_in(UserFactory(username="editor", superuser=True))
    if who == "viewer":
        list(make_groups())
        user = UserFactory(username="onlooker")
        user.groups.add(Group.objects.get(name="viewer"))
        client = logged_in(user)
    wrong = []
    for path in paths:
        try:
            with undone():
                response = client.get(path)
                page = text_of(response)
        except Exception as error:
            wrong.append(f"{path}: {type(error).__name__}: {str(error)[:200]}")
            continue
        if response["Content-Type"].startswith("text/html"):
            wrong += [f"{path}: {fault}" for fault in faults(page)]
    assert not wrong, "\n".join(wrong)
