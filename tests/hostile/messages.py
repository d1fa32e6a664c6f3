"""Hostile messages: valid task messages after a few changes of their fields, bytes, headers or properties."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from scheduling.broker.rabbitmq.messages import id_of
from scheduling.execution.foreign import message_key
from tests.hostile.atoms import NUMBERS, TEXTS, deep, instant, random_text

Execution = tuple[int, str, str, int | None]
"""A healthy execution: its id, its key, and the type and the id of its target."""

Change = Callable[[random.Random, "Hostile", "World"], None]


@dataclass
class Hostile:
    """A message to publish.

    Args:
        number: counts the hostile messages of a test. `mark` contains it.
        fields: the fields of the body. If `body` is set, the fields are not sent.
    """

    number: int
    fields: dict[str, Any] = field(default_factory=dict)
    body: bytes | None = None
    headers: dict[str, Any] = field(default_factory=dict)
    properties: dict[str, Any] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)

    @property
    def keys(self) -> set[str]:
        """The execution keys that the message's row may have; empty if the message has no message id."""
        ident = id_of(SimpleNamespace(message_id=self.properties["message_id"]))
        return {message_key(ident)} if ident else set()

    def names(self, execution: Execution) -> bool:
        """Whether the message names this execution with its key and its target.

        Such a message may be a copy. So a consumer may acknowledge it without a start, and it may be removed from the
        failed queue.
        """
        try:
            data = json.loads(self.encoded())
        except (ValueError, RecursionError):
            return False
        names = ("execution_id", "execution_key", "type", "id")
        return isinstance(data, dict) and tuple(data.get(name) for name in names) == execution

    @property
    def mark(self) -> str:
        """A text that is unique for this message. Its message id begins with the text, if it has one."""
        return f"fuzz-{self.number:06d}-"

    def encoded(self) -> bytes:
        """Return the body."""
        if self.body is not None:
            return self.body
        return json.dumps(self.fields).encode("utf-8", "surrogatepass")


@dataclass(frozen=True)
class World:
    """What a message may name: the ids of harmless workers, and healthy executions."""

    workers: Sequence[int]
    executions: Sequence[Execution]


def hostile_message(pick: random.Random, number: int, world: World) -> Hostile:
    """Return a hostile message: a valid one after one to three changes."""
    message = Hostile(number)
    message.properties = {"message_id": f"{message.mark}m", "content_type": "application/json", "delivery_mode": 2}
    message.fields = {
        "type": "worker", "id": pick.choice(world.workers), "scheduler_id": None,
        "params_scheduler": json.dumps({"mark": message.mark}),
    }  # fmt: skip
    for name in pick.choices(list(CHANGES), weights=WEIGHTS, k=pick.choice((1, 1, 1, 2, 2, 3))):
        CHANGES[name](pick, message, world)
        message.changes.append(name)
    return message


def _set(message: Hostile, name: str, value: Any) -> None:
    if message.body is None:
        message.fields[name] = value


def _field(pick: random.Random, message: Hostile, _world: World) -> None:
    names = ("type", "id", "scheduler_id", "params_scheduler", "execution_id", "attempt", "execution_key",
             "scheduled_at", "trigger", "version", "retry_count", "failed_at", "failed_reason")  # fmt: skip
    value = pick.choice(
        [*NUMBERS, *TEXTS, None, True, [], {}, [1], {"a": 1}, instant(pick), deep(pick.choice((3, 50)))]
    )
    _set(message, pick.choice(names), value)


def _missing(pick: random.Random, message: Hostile, _world: World) -> None:
    if message.body is None:
        message.fields.pop(pick.choice(sorted(message.fields)), None)


def _params(pick: random.Random, message: Hostile, _world: World) -> None:
    mark = f'"mark":"{message.mark}"'
    depth = pick.choice((29, 30, 31, 32, 33, 120, 500, 960, 965, 970, 980, 3000))
    _set(message, "params_scheduler", pick.choice((
        f'{{{mark},"x":NaN}}', f'{{{mark},"x":1e999}}', f'{{{mark},"x":-Infinity}}',
        f'{{{mark},"x":{"[" * depth}{"]" * depth}}}', f'{{{mark},"x":{"9" * pick.choice((19, 20, 100, 4000, 5000))}}}',
        f'{{{mark},"x":"\\u0000"}}', f'{{{mark},"x":"\\ud800"}}', f'{{{mark},"\\udc00":1}}',
        f'[{{{mark}}}]', f'"{message.mark}"', f'{{{mark}', f'{{{mark},{mark}}}', f'\ufeff{{{mark}}}',
        json.dumps({"mark": message.mark, random_text(pick): pick.choice(TEXTS)}),
        json.dumps({"mark": message.mark, "x": [pick.choice(NUMBERS) for _ in range(50)]}),
        {"mark": message.mark, "x": pick.choice(NUMBERS)}, {"mark": message.mark, "x": pick.choice(TEXTS)},
    )))  # fmt: skip


def _instants(pick: random.Random, message: Hostile, _world: World) -> None:
    _set(message, pick.choice(("scheduled_at", "failed_at")), instant(pick))


def _target(pick: random.Random, message: Hostile, _world: World) -> None:
    _set(message, "type", pick.choice(("worker", "report", "reminder", "Worker", "")))
    _set(message, "id", pick.choice((0, -1, 10**6, 2**31, 2**63 - 1, 2**63, 1.0, "1", True)))


def _no_such_row(pick: random.Random, message: Hostile, _world: World) -> None:
    message.fields |= {
        "execution_id": pick.choice((10**9, 2**31, 2**62, 2**63 - 1)) - pick.randrange(1000),
        "execution_key": pick.choice(("cron-2020-1-1-0-0", "manual-x", "", "é" * 64)),
        "attempt": pick.choice((1, 2, 2**31 - 1)),
    }


def _row(pick: random.Random, message: Hostile, world: World) -> None:
    """Name a healthy execution: correctly, with another attempt, by another key, or with another target."""
    if not world.executions or message.body is not None:
        return
    pk, key, type_, target = pick.choice(world.executions)
    message.fields |= {"type": type_, "id": target, "execution_id": pk, "execution_key": key}
    message.fields["attempt"] = pick.choice((1, 1, 2, 3, 19, 2**31 - 1))
    wrong = pick.choice(("nothing", "nothing", "key", "target", "type", "failed_at"))
    if wrong == "key":
        _set(message, "execution_key", pick.choice(("cron-2020-1-1-0-0", "", key.upper())))
    elif wrong == "target":
        message.fields["id"] = pick.choice([pk for pk in world.workers if pk != target])
    elif wrong == "type":
        message.fields["type"] = "report"
    elif wrong == "failed_at":
        message.fields |= {"failed_at": "2026-03-10T12:00:00Z", "failed_reason": "moved by hand"}


def _bytes(pick: random.Random, message: Hostile, _world: World) -> None:
    """Damage the bytes of the body."""
    raw = bytearray(message.encoded())
    for _ in range(pick.choice((1, 2, 8))):
        place = pick.randrange(len(raw) + 1)
        match pick.randrange(4):
            case 0:
                raw[place:place] = pick.choice(
                    (b"\x00", b"\xff\xfe", b"{", b"]", b'"', b"\\ud800", b"\xed\xa0\x80", b"9" * 50)
                )
            case 1:
                del raw[place : place + pick.choice((1, 5, 40))]
            case 2:
                raw[place : place + 1] = bytes([pick.randrange(256)])
            case _:
                raw = raw[:place] + raw[place : place + 30] + raw[place:]
    message.body = bytes(raw)


def _body(pick: random.Random, message: Hostile, _world: World) -> None:
    """Replace the body, or encode it differently."""
    raw = message.encoded()
    text = raw.decode("utf-8", "replace")
    message.body = pick.choice((
        b"", b"null", b"[]", b"1", b'"x"', b"NaN", b"{}", b"{" * 5000, b"[" * 100_000, b"\x80\x04N.", b"<xml/>",
        b"\xef\xbb\xbf" + raw, text.encode("utf-16"), text.encode("utf-32"),
        raw + raw, b"[" + raw + b"]", bytes(pick.randrange(256) for _ in range(pick.choice((1, 100, 5000)))),
        b'{"a":' * 2000 + b"1" + b"}" * 2000, b"\x00" * 100, b"\n" + raw + b"\n", b"9" * 5000, raw[: len(raw) // 2],
    ))  # fmt: skip


def _huge(pick: random.Random, message: Hostile, _world: World) -> None:
    size = pick.choice((60_000, 200_000, 990_000, 1_200_000))
    _set(message, "params_scheduler", json.dumps({"mark": message.mark, "x": "y" * size}))


def _headers(pick: random.Random, message: Hostile, _world: World) -> None:
    queue = pick.choice(("cron_scheduler", "x", ""))
    death = {
        "count": pick.choice([*NUMBERS64, "2", None, [], b"\xff"]),
        "queue": pick.choice((queue, queue, 1, b"\xff", [])),
        "reason": pick.choice(("rejected", "expired", "maxlen", "delivery_limit", "\x1b[31m", "é" * 300, None)),
        "time": pick.choice((datetime.max.replace(tzinfo=UTC, microsecond=0), instant(pick), 2**62, -1, {})),
        "exchange": pick.choice(("", "x" * 300, None, 1)),
        "routing-keys": pick.choice(([], ["a"] * 50, "x", [1, None])),
    }
    message.headers |= {
        pick.choice(("x-retry-count", "x-death", "x-failed-at", "x-last-error", "x-first-failure-timestamp",
                     "x-deduplication-header", "x-delivery-count", "x-first-death-queue", "é" * 60, "", b"\xff")):
        pick.choice([*NUMBERS64, *[value for value in TEXTS if _can_be_encoded(value)], None, True, [], {}, [death],
                     [death, 1, "x", None, {}], [death] * 200, {"count": 1}, [[[[]]]], b"\xff\x00", "z" * 30_000])
    }  # fmt: skip
    if pick.random() < 0.1:
        message.headers |= {f"h{number}": "v" * 200 for number in range(100)}


def _properties(pick: random.Random, message: Hostile, _world: World) -> None:
    name, values = pick.choice((
        ("delivery_mode", (1, 2, 0, 3, 255)), ("priority", (0, 9, 255)), ("timestamp", (0, 1, 2**62)),
        ("content_type", ("", "text/plain", "application/x-python-pickle", "é" * 100)),
        ("content_encoding", ("gzip", "", "utf-16", "é" * 100)), ("correlation_id", ("", "x" * 255, "\x00")),
        ("reply_to", ("amq.rabbitmq.reply", "x" * 255)), ("type", ("", "x" * 255, "\u202e")), ("app_id", ("x" * 255,)),
        ("expiration", ("600000",)),
    ))  # fmt: skip
    message.properties[name] = pick.choice(values)


def _message_id(pick: random.Random, message: Hostile, _world: World) -> None:
    mark = message.mark
    message.properties["message_id"] = pick.choice((
        mark + "x" * (255 - len(mark)), mark + "é" * 110, mark + "\x00", mark + "\n[ERROR] forged", mark + "<script>",
        mark + "\x1b[31m", mark + "%s{}'\"", mark + " ", mark.encode() + b"\xff", mark.encode() + b"\xff" * 200, None,
    ))  # fmt: skip


def _can_be_encoded(value: str) -> bool:
    return len(value) < 60_000 and not any("\ud800" <= char <= "\udfff" for char in value)


NUMBERS64 = [value for value in NUMBERS if isinstance(value, int) and -(2**63) <= value < 2**63]

CHANGES: dict[str, Change] = {
    "field": _field, "missing": _missing, "params": _params, "instant": _instants, "target": _target,
    "no such row": _no_such_row, "row": _row, "bytes": _bytes, "body": _body, "huge": _huge, "headers": _headers,
    "properties": _properties, "message id": _message_id,
}  # fmt: skip
WEIGHTS = [20, 8, 20, 10, 8, 8, 16, 20, 12, 0.3, 8, 6, 5]
