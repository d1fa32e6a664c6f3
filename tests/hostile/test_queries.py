"""Hostile query strings and primary keys at every address of the admin. No page is a server error or changes a row."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.admin.addresses import Address
from tests.admin.walk import undone
from tests.admin.world import changed, world
from tests.hostile import fuzz
from tests.hostile.query_strings import names_of, path_of, query
from tests.hostile.requests import ANSWERS, ask, asked_names, described, query_of
from tests.hostile.tries import Faults, tries

pytestmark = pytest.mark.slow

READERS = ("changelist", "autocomplete", "follow", "preview", "scheduler_add")
"""The last parts of the names of addresses that read many parameters."""


def parameters(client: Client, addresses: list[Address]) -> list[list[str]]:
    """Ask each address once without a query string, and return the names of its parameters."""
    found = []
    for address in addresses:
        with undone(), asked_names() as asked:
            ask(client, "GET", address.path)
        found.append(names_of(address, asked))
    return found


def test_no_query_string_is_a_server_error_or_changes_a_row(
    clients: list[Client], addresses: list[Address], keys: list[str]
) -> None:
    names, faults, before = parameters(clients[0], addresses), Faults(), world()
    readers = [place for place, address in enumerate(addresses) if address.name.endswith(READERS)]
    for number, random in tries("queries", fuzz.amount(fuzz.QUERIES, 40)):
        # The even examples go through all addresses, and the odd examples through the readers.
        places = readers if number % 2 else range(len(addresses))
        place = places[number // 2 % len(places)]
        address, client = addresses[place], random.choice(clients)
        path, pairs = path_of(random, address, keys), query(random, names[place], keys)
        with undone():
            answer = ask(client, "GET", path, query_of(pairs))
            changes = changed(before, world())
        example = f"{address.name} {path[:200]}?{described(pairs)}"
        if answer.status not in ANSWERS:
            faults.add(answer.error or str(answer.status), number, f"{answer.text[:200]!r} {example}")
        if changes:
            faults.add(f"rows have changed: {sorted(changes)}", number, example)
    faults.check()
