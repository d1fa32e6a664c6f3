"""Hostile addresses of channels. None connects to this machine or the internal network, and none is shown again."""

from __future__ import annotations

import ipaddress
import re
import socket
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from scheduling.admin.channels.form import ChannelForm
from scheduling.models import Channel
from scheduling.notify.channels import send
from scheduling.notify.delivery import Letter, NotSent, Refused, Unsure
from tests.hostile import fuzz
from tests.hostile.chat_addresses import chat_address
from tests.hostile.tries import Faults, tries

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

MARK = "hunter2token"
PUBLIC = "93.184.215.14"


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The addresses to which a connection is asked for. No connection is made, and no name is looked up."""
    found: list[Any] = []
    real = socket.getaddrinfo

    def connect(_socket: socket.socket, address: Any) -> None:
        found.append(address)
        raise ConnectionRefusedError

    def look_up(host: Any, port: Any, *arguments: Any, **options: Any) -> Any:
        flags = options.pop("flags", 0)
        try:
            return real(host, port, *arguments, flags=flags | socket.AI_NUMERICHOST, **options)
        except socket.gaierror:
            if flags & socket.AI_NUMERICHOST:
                raise
        name = str(host).lower()
        inside = name.endswith("localhost") or "internal" in name or name == "localhost."
        return real("127.0.0.1" if inside else PUBLIC, port, *arguments, **options)

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setenv("CRON_CHAT_TEAM", "json://127.0.0.1/hook")
    monkeypatch.setenv("CRON_CHAT_SYSLOG", "syslog://")
    monkeypatch.setenv("CRON_WEBHOOK_INSIDE", "http://127.0.0.1/hook")
    return found


def saved(kind: str, address: str) -> bool:
    """Whether the form accepts the address. An address that it does not accept has a sentence at the field.

    Raises:
        AssertionError: the error is at another place, or has no sentence.
    """
    form = ChannelForm({"name": "Team", "description": "", "kind": kind, "new_address": address})
    if form.is_valid():
        return True
    assert set(form.errors) == {"new_address"}
    said = form.errors["new_address"].as_text()
    assert said.endswith((".", "!)"))
    assert MARK not in said
    assert MARK not in str(form)
    return False


def fault_of(kind: str, address: str, connections: list[Any]) -> str:
    """Return what is wrong with the treatment of an address; empty if nothing is."""
    connections.clear()
    try:
        accepted = saved(kind, address)
    except ValidationError as error:
        return f"an error that is not at the field: {error}"
    if connections:
        return f"the form has connected to {connections[0]}"
    # Plain SQL can store an address that the form does not accept, so each address is sent to.
    try:
        channel = Channel(name="Team", kind=kind, address=address, secret=f"{MARK}-for-webhooks")
        send(channel, Letter("subject", f"text {MARK}"), {"event": "test"}, "delivery-1")
    except (Refused, NotSent, Unsure) as error:
        if MARK in str(error):
            return f"the error has the secret: {error}"
    else:
        return "the message counts as sent, although nothing was connected"
    inside = [place for place in connections if not ipaddress.ip_address(place[0]).is_global]
    if inside:
        return f"a connection to {inside[0]}"
    return "sent, although the form refuses it" if connections and not accepted else ""


def test_no_address_reaches_the_internal_network(connections: list[Any]) -> None:
    faults, reached = Faults(), 0
    for number, pick in tries("chat addresses", fuzz.amount(fuzz.CHATS, 100)):
        address = chat_address(pick).replace("password", MARK).replace("token", MARK)
        try:
            kind = pick.choice(("chat", "webhook"))
            if kind == "webhook" and pick.random() < 0.8:  # most hostile addresses begin with the scheme of a service
                address = re.sub(r"^[a-z]+://", pick.choice(("http://", "https://")), address)
            reason = fault_of(kind, address, connections)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
        reached += bool(connections)
        if reason:
            faults.add(reason, number, repr(address))
    fuzz.report("chat addresses", reached_the_public_network=reached)
    faults.check()
    assert reached, "no address was good enough to test the guard"
