"""Hostile values for the columns of all tables, and the SQL that writes them.

The values are written without foreign keys, CHECK constraints and strict types, if the database has a switch for them.
An operator's SQL client can write such values, and a restore from another database can leave them behind.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import DatabaseError, Error, connection, models

from tests.hostile.atoms import INSTANTS, NUMBERS, TEXTS, instant, random_text

APPS = ("scheduling", "cron_reports")

WORDS = {
    "state": ("claimed", "queued", "running", "retrying", "succeeded", "failed", "cancelled", "discarded", "skipped",
              "RUNNING", "collecting", "waiting", "released", "done", "stopped", "nonsense"),
    "queue": ("main", "standalone", "immediate", "MAIN", "other"),
    "trigger": ("cron", "date", "manual", "message", "code", "other"),
    "result": ("null", "{", "NaN", '{"x":"\\u0000"}', '"\\ud800"', "[" * 100_000, '{"<b>": "<script>"}', "1" * 5000),
    "type": ("worker", "report", "reminder", "Worker", "scheduler", "nonsense"),
    "kind": ("producer", "consumer", "step", "cursor", "chat", "webhook", "email", "other", "inbox", "slow",
             "not_finished", "INBOX"),
    "at": ("06:30", "24:00", "6:30", "-1:00", "06:3\u0660", "00:00"),
    "severity": ("info", "critical", "Critical", "fatal"),
    "value": ("null", "{", "NaN", '{"x":"\\u0000"}', "[" * 100_000, '{"<b>": "<script>"}', '"\u202e"'),
    "outcome": ("succeeded", "failed", "timed_out", "crashed", "cancelled", "interrupted", "other"),
    "schedule": ("* * * * *", "*/0 * * * *", "61 * * * *", "0 0 31 2 *", "0 0 29 2 *", "@reboot", "@yearly",
                 "* * * * * *", "0-59/7 */5 1,15 jan-dec sun-sat", "L * * * *", "* * * * 8", "-1 * * * *", "*" * 255,
                 "1-99999999999 * * * *", "@every 90m", "@every 10s", "@every 1m from 0001-01-01T00:00Z", "@every",
                 "@every 2w on fri at 08:00 from 9999-12-31", "@every 62135596801s", "@every 1d at 25:00"),
    "timezone": ("Nowhere/Atlantis", "Europe/Madrid", "../../etc/passwd", "UTC+99", "europe/madrid", "Factory"),
    "language": ("de", "xx", "en-us", "../..", "DE", "zh-hans"),
    "params": ("null", "[]", "[1]", '"x"', "1", "{", '{"x":NaN}', '{"x":1e999}', '{"x":"\\u0000"}', "",
               '{"x":"\\ud800"}', '{"since_days":"x"}', '{"__proto__":1}', '{"":{}}', '{"x":1,"x":2}'),
    "entries": ("null", "{}", '"x"', "[[]]", "[null, 1, {}]", '[{"queue": 1, "reason": "expired"}]', '[{"queue": "q"}]',
                '[{"queue": "<b>", "reason": "\u202e", "count": 1e999, "time": "0001-01-01"}]',
                '[{"queue": "%s", "reason": "expired", "count": -1, "time": 9e99, "routing-keys": [1, null]}]',
                '[{"queue": "%(x)s", "reason": "rejected", "count": 99999999999999999999, "exchange": {}}]',
                "sat,sun\nmon-fri 22:00-06:00 night", "2026-12-24..2027-01-02 \u202e<b>", "00:00-24:00", "25.12.2026",
                "every 02-29\n" * 100_000, "every 12-25 " + "x" * 300, "#" * 2_000_001, "\u0662\u0660-12-25"),
    "headers": ("null", "[]", '"x"', "{", '{"a": 1}', '{"": "x"}', '{"a": {"b": "c"}}', '{"token": "\u202e<b>"}', ""),
    "name": ("tests.noop", "tests.nothing", "Tests.Noop"),
    "file": ("../../etc/passwd", "/etc/passwd", "nowhere/x.csv", "\\x", "a\nb"),
}  # fmt: skip
"""Words by the name of the column. Columns without their own words get values by type."""


@dataclass(frozen=True)
class Spoiled:
    """A hostile value that the database has stored."""

    table: str
    column: str
    pk: int
    value: Any

    def __str__(self) -> str:
        return f"{self.table}.{self.column}[{self.pk}]={self.value!r:.80}"


def all_models() -> list[type[models.Model]]:
    """Return the models that have a table of their own."""
    found = [model for label in APPS for model in apps.get_app_config(label).get_models()]
    return [model for model in found if model._meta.managed and not model._meta.proxy]


def columns(model: type[models.Model], keys: bool = True) -> list[models.Field]:
    """Return the columns that SQL can write. With `keys` false, the primary key is left out."""
    return [field for field in model._meta.local_fields if not field.generated and (keys or not field.primary_key)]


def hostile_value(pick: random.Random, field: models.Field) -> Any:
    """Return a value: of the column's own kind but wrong or at a limit, or of any other kind."""
    if field.primary_key:  # with the largest number as a key, SQLite and MariaDB could insert no further row
        return pick.choice((0, -1, 2**31 - 9, 2**31, "x", None, 0.5, b"", "1e3"))
    if pick.random() < 0.25:
        return pick.choice([None, _any(pick), _any(pick), b"\xff\xfe\x00", b""])
    json_field = isinstance(field, models.JSONField) and field.column not in WORDS
    words = WORDS.get("params" if json_field else field.column.removeprefix("planned_"), ())
    if words and pick.random() < 0.6:
        return pick.choice(words)
    match field:
        case models.JSONField():
            return _json(pick)
        case models.DateTimeField():
            return instant(pick)
        case models.CharField() | models.TextField():
            return pick.choice([*TEXTS, random_text(pick), "z" * pick.choice((64, 150, 255, 256, 70_000, 300_000))])
        case models.ForeignKey():
            return pick.choice((0, -1, 1, 2, 10**9, 2**63 - 1, "x"))
        case _:
            return pick.choice([*NUMBERS, "", "x", "1_000", "many", " 1"])


def _any(pick: random.Random) -> Any:
    return pick.choice([*TEXTS, *NUMBERS, *INSTANTS, _json(pick)])


def _json(pick: random.Random) -> str:
    depth = pick.choice((29, 31, 32, 33, 100, 500, 900, 965, 3000))
    return pick.choice((
        f'{{"x": {"[" * depth}{"]" * depth}}}', f'{{"x": {"9" * pick.choice((20, 400, 5000))}}}',
        f'[[{pick.randrange(10)}, "x"], [null, {2**70}], 1]', f'{{"queue": [{depth}]}}', '{"clock_ahead": 1e300}',
        f'{{"x": "{"y" * pick.choice((10, 1_000_000))}"}}', '{"claimed": {}, "running": "x", "runs": -1}',
        f'{{"x": {pick.choice(("0.0", "-0", "1e-400", "true", "null", "[[]]"))}}}', '{"last_dispatch": "0000-00-00"}',
    ))  # fmt: skip


@contextmanager
def lenient() -> Iterator[None]:
    """Switch off what would refuse a value: foreign keys, CHECK constraints and strict types."""
    on, off = {
        "sqlite": (
            ["PRAGMA foreign_keys = OFF", "PRAGMA ignore_check_constraints = ON"],
            ["PRAGMA foreign_keys = ON", "PRAGMA ignore_check_constraints = OFF"],
        ),
        "mysql": (
            ["SET SESSION sql_mode = ''", "SET SESSION foreign_key_checks = 0", *_maria("check_constraint_checks = 0")],
            [
                "SET SESSION sql_mode = DEFAULT",
                "SET SESSION foreign_key_checks = 1",
                *_maria("check_constraint_checks = 1"),
            ],
        ),
        "postgresql": (["SET session_replication_role = replica"], ["SET session_replication_role = origin"]),
    }[connection.vendor]
    try:
        _execute(on)
    except DatabaseError:  # only an administrator of PostgreSQL may switch; for others, it refuses more values
        if connection.vendor != "postgresql":
            raise
        yield
        return
    try:
        yield
    finally:
        _execute(off)
        if connection.vendor == "mysql":
            connection.close()  # the next connection has the mode that Django sets


def _maria(setting: str) -> list[str]:
    return [f"SET SESSION {setting}"] if getattr(connection, "mysql_is_mariadb", False) else []


def _execute(statements: Sequence[str]) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def write(model: type[models.Model], field: models.Field, pk: int, value: Any) -> Spoiled | None:
    """Write a value by SQL. Return None if the database or its driver refuses the value."""
    quote, table = connection.ops.quote_name, model._meta.db_table
    statement = f"UPDATE {quote(table)} SET {quote(field.column)} = %s WHERE {quote(model._meta.pk.column)} = %s"
    if isinstance(value, float | int) and connection.vendor == "postgresql":
        value = str(value)  # a literal without a type, as SQL has it
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement, [value, pk])
    except (DatabaseError, Error, ValueError, OverflowError, TypeError):
        if connection.vendor == "postgresql" or not connection.is_usable():
            connection.rollback()
        return None
    return Spoiled(table, field.column, pk, value)


def empty() -> None:
    """Delete the rows of all tables, also the rows that Django cannot read."""
    tables = [connection.ops.quote_name(model._meta.db_table) for model in all_models()]
    with lenient():
        if connection.vendor == "postgresql":
            _execute([f"TRUNCATE {', '.join(tables)} CASCADE"])
        else:
            _execute([f"DELETE FROM {table}" for table in tables])
