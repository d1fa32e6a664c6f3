"""The receivers of docs/channels.md accept what we send, once, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

from scheduling.models import Channel
from scheduling.notify.channels import send
from scheduling.notify.delivery import Letter
from tests.notify.chat_server import ChatServer

PAGE = Path(__file__).parents[2] / "docs" / "channels.md"

SECRET = "cronhook_of_the_tests"


def test_the_receivers_accept_our_messages_and_no_other_ones(chat: ChatServer) -> None:
    document = Sybil(parsers=[PythonCodeBlockParser()]).parse(PAGE)
    done: list[dict[str, Any]] = []
    document.namespace.update({"json": json, "secret": SECRET, "known_deliveries": set(), "enqueue": done.append})
    for example in document.examples():
        example.evaluate()
    receive, is_genuine = document.namespace["receive"], document.namespace["is_genuine"]
    row = Channel(name="hook", kind="webhook", address=f"http://{chat.host}/hook", secret=SECRET)
    for _copy in range(2):
        send(row, Letter("Stand-up", "At ten."), {"event": "reminder"}, "reminder-812-5f0c")
    for _path, headers, body in chat.arrived:
        assert receive(headers, body) == 200
        assert is_genuine(headers["CRON-Signature"], body, SECRET)
    assert [event["id"] for event in done] == ["reminder-812-5f0c"]
    assert {"version", "id", "sent_at", "event", "subject", "text"} == {*done[0]}
    for wrong in ((headers, body + b" "), ({}, body), ({"CRON-Signature": "t=1,v1=0"}, body)):
        assert receive(*wrong) == 401
    assert not is_genuine(headers["CRON-Signature"], body + b" ", SECRET)
    assert len(done) == 1
