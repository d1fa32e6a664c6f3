"""A receiver of the Healthchecks protocol: it keeps the state of each check, as Healthchecks itself does."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, field

from tests.pings.monitor import Call, Monitor

ADDRESS = re.compile(r"/ping/([0-9a-f-]{36})(/start|/fail)?")
BODY_BYTES = 10_000


@dataclass
class Check:
    """One check.

    Attributes:
        status: new, started, up or down.
        started: the place of the start of each run that has not ended, by its rid.
        finished: the rids of the runs that have ended after their start, in order. Each has a duration.
        log: each event with its rid.
        bodies: the bodies of the failures.
    """

    status: str = "new"
    started: dict[str, int] = field(default_factory=dict)
    finished: list[str] = field(default_factory=list)
    log: list[tuple[str, str]] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)

    def hear(self, event: str, call: Call) -> None:
        rid = call.query.get("rid", "")
        if rid:
            assert str(uuid.UUID(rid)) == rid
        self.log.append((event, rid))
        if event == "start":
            self.started[rid] = len(self.log)
            self.status = "started" if self.status in ("new", "started") else self.status
            return
        if self.started.pop(rid, None):
            self.finished.append(rid)
        self.status = "down" if event == "fail" else "up"
        if event == "fail":
            assert len(call.body) <= BODY_BYTES
            self.bodies.append(call.body.decode())


class Healthchecks(Monitor):
    """The checks by their ids. A test that reads them fails if there was a request that the protocol does not know."""

    def url(self, check: uuid.UUID) -> str:
        """The ping URL of a check."""
        return f"http://{self.host}/ping/{check}"

    @property
    def checks(self) -> dict[str, Check]:
        found: dict[str, Check] = {}
        for call in [*self.calls]:
            parts = ADDRESS.fullmatch(call.path)
            assert parts, f"unknown address: {call.path}"
            assert set(call.query) <= {"rid", "create"}
            event = (parts[2] or "/success")[1:]
            assert call.method == ("POST" if event == "fail" else "GET")
            assert bool(call.body) <= (event == "fail")
            found.setdefault(parts[1], Check()).hear(event, call)
        return found

    def check(self, check: uuid.UUID) -> Check:
        return self.checks.get(str(check), Check())
