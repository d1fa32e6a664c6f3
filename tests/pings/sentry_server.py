"""A receiver of Sentry's envelopes: it reads check-ins and keeps the state of each, as Sentry itself does."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from cronsim import CronSim

from scheduling.core.zones import zone_names
from tests.pings.monitor import Call, Monitor

KEY = "0123456789abcdef0123456789abcdef"
PROJECT = 42
SLUG = re.compile(r"(?![0-9]+$)[a-z0-9_-]{1,50}")
FIELDS = {
    "check_in_id", "monitor_slug", "status", "duration", "environment", "release", "monitor_config", "type",
    "event_id", "timestamp", "platform", "sdk", "contexts", "server_name", "extra",
}  # fmt: skip
CONFIG = {
    "schedule", "timezone", "checkin_margin", "max_runtime", "failure_issue_threshold", "recovery_threshold",
}  # fmt: skip


@dataclass
class Received:
    """What Sentry knows: the status of each check-in by its id, each payload, and the configuration of each monitor."""

    check_ins: dict[str, str] = field(default_factory=dict)
    payloads: list[dict[str, Any]] = field(default_factory=list)
    monitors: dict[str, dict[str, Any]] = field(default_factory=dict)
    ignored: int = 0
    """How many check-ins came after the end of theirs. Sentry drops them."""


class Sentry(Monitor):
    """A Sentry with one project."""

    @property
    def dsn(self) -> str:
        return f"http://{KEY}@{self.host}/{PROJECT}"

    @property
    def received(self) -> Received:
        found = Received()
        for call in [*self.calls]:
            payload = _payload(call)
            found.payloads.append(payload)
            key = payload["check_in_id"]
            if found.check_ins.get(key) in ("ok", "error"):
                found.ignored += 1
                continue
            found.check_ins[key] = payload["status"]
            if config := payload.get("monitor_config"):
                _check_config(config)
                found.monitors[payload["monitor_slug"]] = config
        return found


def _payload(call: Call) -> dict[str, Any]:
    """The check-in of an envelope: a line with the header, a line with the header of the item, and the item."""
    assert (call.method, call.path) == ("POST", f"/api/{PROJECT}/envelope/")
    assert call.headers["Content-Type"] == "application/x-sentry-envelope"
    assert f"sentry_key={KEY}" in call.headers["X-Sentry-Auth"]
    assert call.headers["X-Sentry-Auth"].startswith("Sentry ")
    header, item, rest = call.body.split(b"\n", 2)
    assert isinstance(json.loads(header), dict)
    head = json.loads(item)
    assert head["type"] == "check_in"
    data = rest[: head["length"]]
    assert rest[head["length"] :].strip() == b""  # one item
    payload: dict[str, Any] = json.loads(data)
    assert set(payload) <= FIELDS, set(payload) - FIELDS
    assert re.fullmatch(r"[0-9a-f]{32}", payload["check_in_id"])
    assert SLUG.fullmatch(payload["monitor_slug"])
    assert payload["status"] in ("in_progress", "ok", "error")
    assert payload["environment"]
    if payload["status"] == "in_progress":
        assert payload.get("duration") is None
    else:
        assert isinstance(payload["duration"], int | float)
        assert payload["duration"] >= 0
    return payload


def _check_config(config: dict[str, Any]) -> None:
    """What the validator of Sentry asks of a configuration."""
    assert set(config) == CONFIG
    schedule = config["schedule"]
    assert set(schedule) == {"type", "value"}
    assert schedule["type"] == "crontab"
    assert len(schedule["value"].split()) == 5
    CronSim(schedule["value"], _now())
    assert config["timezone"] in zone_names()
    for name, most in (
        ("checkin_margin", 40_320), ("max_runtime", 40_320), ("failure_issue_threshold", 720),
        ("recovery_threshold", 720),
    ):  # fmt: skip
        assert type(config[name]) is int
        assert 1 <= config[name] <= most


def _now() -> Any:
    from django.utils import timezone

    return timezone.now()
