"""Press every button of the admin once, as a browser does.

The posted data is kept, so that a test can post it again while another user is logged in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

from bs4 import BeautifulSoup, Tag
from django.db import transaction
from django.test import Client
from django.urls import resolve

from tests.admin.addresses import Address
from tests.admin.world import World, changed, world

STEPS = 4
"""The maximum number of POSTs for one button: the form, the confirmation page and further confirmations."""

FILLED = {"reason": "it is known", "description": "described anew", "subject": "Another one"}
"""The texts that are typed into the fields of every form. Each key is the name of a field."""

PER_ROW = {"scheduling_scheduler_backfill"}
"""Buttons that are pressed on the page of each row: for some rows there is nothing to do."""

PARAMS = {"params.field.since_days": "7"}

TYPED: dict[str, dict[str, Any]] = {
    "scheduling_worker_add": {"name": "unused.too"},
    "scheduling_reminder_add": {"name": "another", "recipients": "a@example.com"},
    "scheduling_pause_add": {"what": "site"},
    "scheduling_loweredlimit_add": {"handler": "worker:tests.two_at_once", "at_once": "1"},
    "scheduling_apitoken_add": {"name": "another"},
    "scheduling_alertrule_add": {"name": "another", "at": "06:30"},
    "scheduling_alertrule_change": {"at": "07:15"},
    "scheduling_calendar_add": {"name": "another", "entries": "every 12-25 Christmas"},
    "scheduling_calendar_change": {"entries": "every 12-25 Christmas\nsat"},
    "scheduling_channel_add": {"name": "another", "kind": "chat", "new_address": "json://chat.example.com/token"},
    "cron_reports_report_add": {"controller": "unused.too"},
    "scheduling_schedulerexecution_edit_rerun": PARAMS,
    "scheduling_failedexecution_edit": PARAMS,
}
"""The texts that are typed into the fields of certain forms only. Each key is the name of a form's URL pattern."""

NOT_PRESSED = {"_addanother", "_continue", "_saveasnew", "_popup"}
"""Buttons that are not pressed, because they post the same form as another button."""


@dataclass(frozen=True)
class Post:
    """The data that a button posts, and the path that receives it."""

    path: str
    data: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The name of the path's URL pattern, followed by the chosen action if the form has actions."""
        name = resolve(urlsplit(self.path).path).url_name or ""
        return f"{name}: {self.data['action']}" if self.data.get("action") else name


@contextmanager
def undone() -> Iterator[None]:
    """Roll back everything that is written to the database inside the block."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@contextmanager
def logged_in_after(client: Client) -> Iterator[None]:
    """Keep the client's cookies. A request that logs in or changes a password gets a new session, which is undone."""
    cookies = {name: morsel.value for name, morsel in client.cookies.items()}
    try:
        yield
    finally:
        client.cookies.clear()
        client.cookies.load(cookies)


def press_all(
    client: Client, addresses: Sequence[Address], filled: Mapping[str, Mapping[str, Any]]
) -> dict[str, tuple[Post, dict[str, Any]]]:
    """Press every button. Return every POST that changes rows, together with the changed rows.

    Args:
        filled: further texts for the fields of certain forms. Each key is the name of a form's URL pattern.
    """
    found: dict[str, tuple[Post, dict[str, Any]]] = {}
    for post, changes in every_post(client, addresses, filled):
        if changes:
            found.setdefault(post.key, (post, changes))
    return found


def every_post(
    client: Client, addresses: Sequence[Address], filled: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[Post, dict[str, Any]]]:
    """Press every button. Yield every POST together with the rows that it changes.

    A button is not pressed again after one of its POSTs has changed rows. The arguments are those of `press_all`.
    """
    found: set[str] = set()
    seen: set[str] = set()
    for address in addresses:
        with undone():
            response = client.get(address.path)
            page = text_of(response)
        if response.status_code == 200:
            typed = {**FILLED, **filled.get(address.name, {})}
            for post in _posts(address.path, page, typed):
                yield from _press(client, post, typed, found, seen)


def text_of(response: Any) -> str:
    """Return a response's text. A download is read to its end, so that its file is closed."""
    return (b"".join(response.streaming_content) if response.streaming else response.content).decode("utf-8", "replace")


def press(client: Client, post: Post) -> tuple[Any, dict[str, Any]]:
    """Post the data, then roll back. Return the response and the rows that the POST changed."""
    with undone(), logged_in_after(client):
        before: World = world()
        response = client.post(post.path, post.data)
        text_of(response)
        return response, changed(before, world())


def press_on(client: Client, post: Post, typed: Mapping[str, Any]) -> Iterator[tuple[Post, dict[str, Any]]]:
    """Send a POST and the POSTs of its confirmation pages. Yield each POST with the rows that it changes."""
    yield from _press(client, post, typed, set(), set())


def _press(
    client: Client, post: Post, typed: Mapping[str, Any], found: set[str], seen: set[str]
) -> Iterator[tuple[Post, dict[str, Any]]]:
    for _step in range(STEPS):
        row = post.path if post.key in PER_ROW else ""
        mark = f"{post.key} {row} {sorted(post.data)}"
        if post.key in found or mark in seen:
            return
        response, changes = press(client, post)
        yield post, changes
        if changes:
            found.add(post.key)
            return
        seen.add(mark)
        if response.status_code != 200:
            return
        further = [following for following in _posts(post.path, text_of(response), typed) if following.key == post.key]
        if not further:
            return
        post = further[0]


def _posts(path: str, page: str, typed: Mapping[str, Any]) -> Iterator[Post]:
    """Yield the POST of every button of every form on a page."""
    soup = BeautifulSoup(page, "html.parser")
    for form in soup.find_all("form"):
        if str(form.get("method", "")).lower() != "post" or form.get("id") == "logout-form":
            continue
        controls = [field for field in soup.find_all(["input", "select", "textarea", "button"]) if _within(field, form)]
        data = _values(controls, typed)
        for button in [control for control in controls if _submits(control)] or [None]:
            name = str(button.get("name") or "") if button is not None else ""
            if name in NOT_PRESSED:
                continue
            target = (button is not None and button.get("formaction")) or form.get("action") or path
            pressed = {**data, name: button.get("value", "")} if button is not None and name else dict(data)
            for choice in _choices(controls, name):
                yield Post(urljoin(path, str(target)), {**pressed, **choice})


def _choices(controls: Sequence[Tag], pressed: str) -> Iterator[dict[str, Any]]:
    """Yield the form data that selects an action, once for each action of a list. Without actions, yield {} once."""
    select = next((field for field in controls if field.name == "select" and field.get("name") == "action"), None)
    if select is None or pressed == "action":
        yield {}
        return
    for option in select.find_all("option"):
        if option.get("value"):
            yield {"action": option["value"]}


def _within(control: Tag, form: Tag) -> bool:
    return control.get("form") == form.get("id") if control.get("form") else form in control.parents


def _submits(control: Tag) -> bool:
    kind = str(control.get("type") or ("submit" if control.name == "button" else "")).lower()
    return kind == "submit" and control.name in ("input", "button") and not control.has_attr("disabled")


def _values(controls: Sequence[Tag], typed: Mapping[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for control in controls:
        name, kind = str(control.get("name") or ""), str(control.get("type") or "").lower()
        if not name or control.name == "button" or kind in ("submit", "button", "file") or control.has_attr("disabled"):
            continue
        if name in typed and kind != "hidden":
            data[name] = typed[name]
        elif name == "_selected_action":
            data.setdefault(name, []).append(str(control.get("value", "")))
        elif (value := _sent(control, kind)) is not None:
            data[name] = value
        if name == "typed":  # a user must type this number to confirm
            data[name] = next(str(control.get("value")) for control in controls if control.get("name") == "count")
    return data


def _sent(control: Tag, kind: str) -> str | list[str] | None:
    """Return the value that a browser sends for an untouched control, or None if the browser sends no value."""
    if control.name == "textarea":
        return control.get_text().removeprefix("\n")
    if control.name == "select" and control.has_attr("multiple"):
        return [str(option.get("value", "")) for option in control.find_all("option", selected=True)] or None
    if control.name == "select":
        chosen = control.find("option", selected=True) or control.find("option")
        return str(chosen.get("value", "")) if chosen is not None else ""
    if kind not in ("checkbox", "radio"):
        return str(control.get("value", ""))
    return str(control.get("value", "on")) if control.has_attr("checked") else None
