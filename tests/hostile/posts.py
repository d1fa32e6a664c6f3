"""The valid POSTs of the admin, from which the tests make hostile POSTs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.test import Client

from tests.admin.addresses import Address
from tests.admin.rows import Rows
from tests.admin.walk import TYPED, Post, every_post, press_on
from tests.factories import PASSWORD, WorkerFactory

NEW_PASSWORD = "staple battery horse"


def typed(rows: Rows) -> dict[str, dict[str, Any]]:
    """Return the texts for the fields of certain forms, so that each form is accepted."""
    return {
        **TYPED,
        "scheduling_scheduler_add": {"worker": str(WorkerFactory().pk), "schedule": "0 9 * * *"},
        "scheduling_worker_changelist": {"_selected_action": [rows["worker"][0].pk]},
        "auth_group_add": {"name": "another"},
        "auth_user_add": {"username": "another", "password1": NEW_PASSWORD, "password2": NEW_PASSWORD},
        "auth_user_password_change": {"password1": NEW_PASSWORD, "password2": NEW_PASSWORD},
        "password_change": {
            "old_password": PASSWORD,
            "new_password1": NEW_PASSWORD,
            "new_password2": NEW_PASSWORD,
        },
    }


def valid_posts(client: Client, addresses: Sequence[Address], rows: Rows) -> list[tuple[Post, bool]]:
    """Return the POSTs of all buttons of the admin, and whether each POST changes rows.

    Some POSTs are not on the pages as the server sends them: a script sends them, or an operator has chosen all rows.
    """
    found = [(post, bool(changes)) for post, changes in every_post(client, addresses, typed(rows))]
    first = {post.key: post for post, _changes in reversed(found)}
    for key in ("republish_selected", "discard_selected"):
        across = first[f"scheduling_failedexecution_changelist: {key}"]
        for post, changes in press_on(
            client, Post(across.path, {**across.data, "select_across": "1"}), {"reason": "known"}
        ):
            found.append((post, bool(changes)))
    scheduler = rows["scheduler"][0].pk
    form = first["scheduling_scheduler_edit"].data
    found.append((Post(f"/admin/scheduling/scheduler/params/{scheduler}/", form), False))
    found.append((Post(f"/admin/scheduling/scheduler/add/?copy={scheduler}", form), True))
    found.append((Post("/admin/login/", {"username": "root", "password": PASSWORD, "next": "/admin/"}), False))
    return found
