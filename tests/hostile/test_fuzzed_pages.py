"""While hostile values stand in the tables, each address of the admin answers without a server error."""

from __future__ import annotations

import random
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from scheduling.admin.common.unusable import CONFLICT
from scheduling.handlers.targets import sync_targets
from scheduling.management.groups import EDITOR, make_groups
from scheduling.models import ReplayGroup
from tests.admin.addresses import Address, every_address
from tests.admin.conftest import logged_in
from tests.admin.rows import Rows, one_of_each
from tests.admin.walk import text_of
from tests.factories import GroupFactory, UserFactory
from tests.hostile import fuzz
from tests.hostile.values import Spoiled, all_models, columns, empty, hostile_value, lenient, write

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

BATCH = 100
"""So many hostile values stand at once."""

QUERIES: tuple[dict[str, str], ...] = ({}, {"q": "x"}, {"o": "1"}, {"all": ""})


def spoil(pick: random.Random, amount: int) -> tuple[list[Spoiled], int]:
    """Write hostile values by SQL until the database has stored `amount`. Return them, and the number of refusals.

    Primary keys stay, because the addresses contain them.
    """
    found = [(model, field) for model in all_models() for field in columns(model, keys=False)]
    keys = {model: list(model._base_manager.values_list("pk", flat=True)) for model, _field in found}
    stored: list[Spoiled] = []
    refused = 0
    with lenient():
        while len(stored) < amount:
            model, field = pick.choice(found)
            spoiled = write(model, field, pick.choice(keys[model]), hostile_value(pick, field))
            stored += [spoiled] if spoiled is not None else []
            refused += spoiled is None
    return stored, refused


def ask(client: Client, address: Address, query: dict[str, str]) -> str:
    """Request an address. Return the status, or what has failed after a server error."""
    try:
        response = client.get(address.path, query)
        text_of(response)
    except Exception as error:
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if "/scheduling/" in frame.filename]
        place = f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""
        return f"{address.name} {type(error).__name__}: {error!s:.200} {place}"
    return f"{address.name} {response.status_code}" if response.status_code >= 500 else str(response.status_code)


def extra_rows() -> None:
    """Store more rows, so that lists have spoiled rows beside healthy ones. One of the replays has a group."""
    for _ in range(3):
        rows = one_of_each()
    ReplayGroup.objects.create(replay=rows["replay"][0], group=GroupFactory())


def check_batch(pick: random.Random, amount: int) -> tuple[list[Spoiled], int, Counter[str]]:
    """Let one batch stand and request all addresses."""
    extra_rows()
    rows: Rows = one_of_each()
    # A user who sees some groups only asks the database for more than a superuser does.
    clients = [logged_in(UserFactory(superuser=True)), _member_of(Group.objects.order_by("pk")[0])]
    addresses = [address for address in every_address(rows) if address.name != "logout"]
    stored, refused = spoil(pick, amount)
    return stored, refused, Counter(ask(pick.choice(clients), address, pick.choice(QUERIES)) for address in addresses)


def _member_of(group: Group) -> Client:
    list(make_groups())
    user = UserFactory()
    user.groups.add(group, Group.objects.get(name=EDITOR))
    return logged_in(user)


def clear() -> None:
    """Delete all rows, also those that Django cannot read."""
    empty()
    sync_targets()


def test_no_page_is_a_server_error_beside_hostile_values(settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path
    pick, amount = fuzz.generator("pages"), fuzz.amount(fuzz.STANDING, BATCH)
    total, refused, answers = 0, 0, Counter[str]()
    while total < amount:
        clear()
        stored, no, answered = check_batch(pick, BATCH)
        total, refused, answers = total + len(stored), refused + no, answers + answered
    clear()
    failures = Counter({answer: count for answer, count in answers.items() if not answer.isdigit()})
    fuzz.report(
        "pages", standing=total, refused=refused, requests=answers.total(), explained=answers[str(CONFLICT)],
        server_errors=failures.total(),
    )  # fmt: skip
    assert not failures, "\n".join(f"{count} x {failure}" for failure, count in failures.most_common())
