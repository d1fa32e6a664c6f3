"""Every button of the admin pressed once, as a browser presses it: what each sends, kept to be sent by others."""

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
"""Pages in a row: a form, a page that asks, one that asks again."""

FILLED = {"reason": "it is known", "description": "described anew", "subject": "Another one"}
"""What somebody types, by the field's name."""

NOT_PRESSED = {"_addanother", "_continue", "_saveasnew", "_popup"}
"""Other ways to send the same form."""


@dataclass(frozen=True)
class Post:
    """What a button sends, and where to."""

    path: str
    data: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The address's name, and the action that was chosen, if there was a choice."""
        name = resolve(urlsplit(self.path).path).url_name or ""
        return f"{name}: {self.data['action']}" if self.data.get("action") else name


@contextmanager
def undone() -> Iterator[None]:
    """Whatever is stored meanwhile is not stored afterwards."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def press_all(
    client: Client, addresses: Sequence[Address], filled: Mapping[str, Mapping[str, Any]]
) -> dict[str, tuple[Post, dict[str, Any]]]:
    """Every POST that changes something, by its key, with what it changed.

    Args:
        filled: what is typed into the forms of an address, by its name.
    """
    found: dict[str, tuple[Post, dict[str, Any]]] = {}
    seen: set[str] = set()
    for address in addresses:
        with undone():
            response = client.get(address.path)
            page = text_of(response)
        if response.status_code == 200:
            typed = {**FILLED, **filled.get(address.name, {})}
            for post in _posts(address.path, page, typed):
                _press(client, post, typed, found, seen)
    return found


def text_of(response: Any) -> str:
    """What a response holds; a stream is read to its end, which is what closes its file."""
    return (b"".join(response.streaming_content) if response.streaming else response.content).decode("utf-8", "replace")


def press(client: Client, post: Post) -> tuple[Any, dict[str, Any]]:
    """Send it, and take it back: the response, and what it changed."""
    with undone():
        before: World = world()
        response = client.post(post.path, post.data)
        text_of(response)
        return response, changed(before, world())


def _press(client: Client, post: Post, typed: Mapping[str, Any], found: dict[str, Any], seen: set[str]) -> None:
    for _step in range(STEPS):
        mark = f"{post.key} {sorted(post.data)}"
        if post.key in found or mark in seen:
            return
        response, changes = press(client, post)
        if changes:
            found[post.key] = (post, changes)
            return
        seen.add(mark)
        if response.status_code != 200:
            return
        further = [each for each in _posts(post.path, text_of(response), typed) if each.key == post.key]
        if not further:
            return
        post = further[0]


def _posts(path: str, page: str, typed: Mapping[str, Any]) -> Iterator[Post]:
    """What each button of each form of a page would send."""
    soup = BeautifulSoup(page, "html.parser")
    for form in soup.find_all("form"):
        if str(form.get("method", "")).lower() != "post" or form.get("id") == "logout-form":
            continue
        controls = [each for each in soup.find_all(["input", "select", "textarea", "button"]) if _within(each, form)]
        data = _values(controls, typed)
        for button in [each for each in controls if _submits(each)] or [None]:
            name = str(button.get("name") or "") if button is not None else ""
            if name in NOT_PRESSED:
                continue
            target = (button is not None and button.get("formaction")) or form.get("action") or path
            pressed = {**data, name: button.get("value", "")} if button is not None and name else dict(data)
            for choice in _choices(controls, name):
                yield Post(urljoin(path, str(target)), {**pressed, **choice})


def _choices(controls: Sequence[Tag], pressed: str) -> Iterator[dict[str, Any]]:
    """A list's actions one by one."""
    select = next((each for each in controls if each.name == "select" and each.get("name") == "action"), None)
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
        elif control.name == "textarea":
            data[name] = control.get_text().removeprefix("\n")
        elif control.name == "select":
            chosen = control.find("option", selected=True) or control.find("option")
            data[name] = str(chosen.get("value", "")) if chosen is not None else ""
        elif name == "_selected_action":
            data.setdefault(name, []).append(str(control.get("value", "")))
        elif kind not in ("checkbox", "radio") or control.has_attr("checked"):
            data[name] = str(control.get("value", "on" if kind in ("checkbox", "radio") else ""))
        if name == "typed":  # a number to be confirmed by typing it
            data[name] = next(str(each.get("value")) for each in controls if each.get("name") == "count")
    return data
