"""Hostile POSTs to every form of the admin. No POST is a server error, and accepted rows can be read and planned."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin, messages
from django.db.models import Max, Model
from django.test import Client
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.broker.database import DatabaseBroker
from scheduling.execution.claim import claim_due, next_due
from scheduling.models import Scheduler
from scheduling.producer.sweeps import sweep
from tests.admin.addresses import OWN, Address
from tests.admin.rows import Rows
from tests.admin.walk import Post, undone
from tests.admin.world import changed, world
from tests.hostile import fuzz
from tests.hostile.form_data import mutated, pairs_of
from tests.hostile.posts import valid_posts
from tests.hostile.requests import ANSWERS, Answer, ask, asked_names, body_of, described
from tests.hostile.tries import Faults, tries

pytestmark = pytest.mark.slow

SAYS = re.compile(r'class="(errornote|errorlist|error|warning)\b')
"""What a page shows about a refused form."""

ASKS = re.compile(r'name="(post|key|password)"')
"""The fields of a page that asks for confirmation or for a login."""

PLANNED = {f"scheduling.{name}" for name in ("Scheduler", "SchedulerExecution", "Worker", "Reminder", "Replay")}
"""The models that producers read. A report is read only when it runs."""


def names_in(client: Client, post: Post) -> list[str]:
    """Send a valid POST, and return the names that its view looks up."""
    with undone(), asked_names() as names:
        send(client, post.path, body_of(pairs_of(post.data)))
    return sorted(names)


def send(client: Client, path: str, body: tuple[bytes, str]) -> Answer:
    path, _mark, query = path.partition("?")
    return ask(client, "POST", path, query, body)


def refusal(post: Post, answer: Answer, changes: dict[str, Any], expected: bool) -> str:
    """Return what is wrong with an answer; empty if nothing is.

    Args:
        expected: whether the valid POST by the same user changes rows.
    """
    on_list = "_changelist" in post.key
    if answer.status not in ANSWERS:
        return answer.error or str(answer.status)
    if changes and answer.status == 200 and SAYS.search(answer.text):
        return f"an error is shown, but rows have changed: {sorted(changes)}"
    if answer.status == 400 and "Nothing was changed" in answer.text and not on_list and "/auth/" not in post.path:
        return "the form has not checked a value that the database refuses"
    if changes or not expected or on_list:  # Django shows the list again if no row is selected
        return ""
    if answer.status == 302:
        said = bool(messages.get_messages(answer.response.wsgi_request)._queued_messages)
    else:
        said = answer.status != 200 or bool(SAYS.search(answer.text) or ASKS.search(answer.text))
    return "" if said else f"nothing was changed, and nothing was said: {answer.status} {post.key}"


def set_aside() -> set[tuple[int, str]]:
    """Return the schedules that cannot be planned, with the reasons."""
    return set(Scheduler.objects.exclude(plan_error="").values_list("pk", "plan_error"))


def unreadable(client: Client, changes: dict[str, Any], aside: set[tuple[int, str]]) -> str:
    """Return the address of a page that cannot show the changed rows, or the reason why they cannot be planned.

    Args:
        aside: the schedules that could not be planned before.
    """
    paths = [reverse("admin:scheduling_dashboard_changelist")] if "scheduling.Scheduler" in changes else []
    for label, found in changes.items():
        model: type[Model] = apps.get_model(label)
        if model in admin.site._registry:
            name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
            paths += [reverse(f"{name}_changelist"), *(reverse(f"{name}_change", args=[row[0]]) for row in found)]
    for path in dict.fromkeys(paths):
        answer = ask(client, "GET", path)
        if answer.status not in ANSWERS:
            return f"{path}: {answer.error}"
    if not PLANNED & set(changes):
        return ""
    now = (Scheduler.objects.aggregate(last=Max("next_run_at"))["last"] or clock.now()) + timedelta(seconds=1)
    next_due()
    claimed = claim_due(now, embedded=True)
    sweep(DatabaseBroker(), now)
    new = set_aside() - aside if "scheduling.Scheduler" in changes else set()
    return f"the form was accepted, but the schedule cannot be planned: {new}" if new or claimed.broken else ""


def test_no_post_is_a_server_error_or_leaves_rows_that_cannot_be_read(
    clients: list[Client], addresses: list[Address], rows: Rows, keys: list[str]
) -> None:
    root = clients[0]
    posts = [(post, changes, names_in(root, post)) for post, changes in valid_posts(root, addresses, rows)]
    edits = [entry for entry in posts if re.search(r"_(add|change|edit|edit_rerun|params)$", entry[0].key)]
    assert {label for label in OWN if any(f"/{label}/" in post.path for post, _changes, _names in edits)} == set(OWN)
    faults, before, aside = Faults(), world(), set_aside()
    for number, random in tries("forms", fuzz.amount(fuzz.FORMS, 20)):
        # The even examples go through all POSTs, and the odd examples through the forms with many fields.
        chosen = edits if number % 2 else posts
        post, changing, names = chosen[number // 2 % len(chosen)]
        client = random.choice([root, root, *clients])
        pairs = mutated(random, post.data, names, keys)
        with undone():
            answer = send(client, post.path, body_of(pairs))
            changes = changed(before, world())
            reason = refusal(post, answer, changes, changing and client is root)
            reason = reason or (unreadable(root, changes, aside) if changes else "")
        if reason:
            faults.add(reason, number, f"{post.path} {described(pairs)} {answer.text[:200] if answer.error else ''}")
    faults.check()
