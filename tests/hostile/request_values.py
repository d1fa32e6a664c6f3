"""Hostile values for fields of forms and for parameters of query strings.

A value is text or bytes. Text may hold half of a surrogate pair, and bytes may be invalid UTF-8, because a client can
send both.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

Value = str | bytes

TEXTS: Sequence[Value] = (
    "", " ", "\x00", "a\x00b", "\t\r\nX-Header: 1", "'", '"', "\\", "\\" * 999, "' OR 1=1 --",
    "<script>alert(1)</script>",
    "{{ 7 }}{% now %}", "%s %(x)s {0}", "../../etc/passwd", "%", "%" * 500, "_" * 5_000, "%_" * 100,
    "\u202egnp.exe", "\ufeff\u200b", "e" + "\u0301" * 1_000, "\u0130" * 200, "\ufdfa" * 200, "🙂" * 200, "ß" * 300,
    "\ud800", "a\udfffb", b"\xff\xfe", b"\xc3", b"a\xed\xa0\x80b", "x" * 201, "x" * 50_000, "🙂" * 20_000,
    "a b " * 600, "a " * 25_000, '"' + "a " * 3_000, "None", "null", "true", "undefined", "[]", "{}",
    "a,b", ",", "1,2,x",
    "(((", "(a+)+$", "[z-a]", "*", "all", "__all__",
)  # fmt: skip

NUMBERS: Sequence[Value] = (
    "0", "-0", "-1", "1", "2147483647", "2147483648", "-2147483649", "9223372036854775807", "9223372036854775808",
    "-9223372036854775809", "1" + "0" * 30, "9" * 400, "9" * 4_300, "9" * 4_301, "-" + "9" * 5_000, "1.5",
    "1e999", "-1e999",
    "1e-999", "1e5", "1e308", "NaN", "-Infinity", "Infinity", "sNaN", "0x10", "1_0", "+1", " 1 ", "\u0663", "\xb2",
    "\uff11\uff12", "1\x00",
    "true", "--1", "1-1", "01", "",
)  # fmt: skip

DATES: Sequence[Value] = (
    "2026-13-45", "0000-00-00", "0000-01-01", "0001-01-01", "1-1-1", "9999-12-31", "9998-12-31", "10000-01-01",
    "2026-02-29", "1969-12-31", "2038-01-20", "2026-01-01", "2030-06-01", "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00", "9999-12-31 23:59:59.999999", "2026-01-01T00:00:00+99:99", "2026-01-01T00:00:00",
    "infinity", "-infinity", "now", "today", "12:60", "25:00", "24:00:00", "00:00", "23:59:60", "23:59:59.9999999",
    "00:00:00+14:00", "\u0662\u0660\u0662\u0666-01-01", "99999999999", "",
)  # fmt: skip

CRONS: Sequence[Value] = (
    "* * * * *", "61 * * * *", "*/0 * * * *", "0 0 31 2 *", "0 0 29 2 *", "@reboot", "@yearly", "0 0 * * 8",
    "0 0 * * 7",
    "1-99999999999 * * * *", "-1 * * * *", "5-1 * * * *", "0 8 * * mon#6", "0 0 L * *", "0 0 1W * *", "H * * * *",
    "R R * * *", "? ? ? ? ?", "0 0 0 1 1 ? 2030", "* * * * * *", "0/5 * * * *", "*/999999999 * * * *", "*" * 300,
    "* " * 60, ",".join("1" * 120) + " * * * *", "1,,2 * * * *", "0 8 * *", "\u00a00 8 * * *", "0\t8\n* * *",
    "\u0660 \u0668 * * *",
    "0 0 31 4,6,9,11 *", "0-59/59 0-23/23 1-31/31 1-12/12 0-7/7",
)  # fmt: skip

ZONES: Sequence[Value] = (
    "Nowhere/Atlantis", "../../../etc/passwd", "/etc/localtime", "UTC\x00", "Europe", "Europe/", "europe/berlin", "UTC",
    "posixrules", "localtime", "Factory", "GMT+25", "Etc/GMT+12", "a" * 64, "a" * 65, ".", "..", "zone.tab",
    "tzdata.zi",
    "Europe/Berlin\n", "Pacific/Kiritimati", "Antarctica/Troll", "right/UTC",
)  # fmt: skip

JSONS: Sequence[Value] = (
    "null", "1", "[]", '"text"', "{", "}", "{'a': 1}", '{"a": 1,}', '{"since_days": NaN}', '{"x": -Infinity}',
    '{"x": 1e999}', '{"since_days": 1, "since_days": 2}', '{"x": ' + "9" * 5_000 + "}", '{"x": 9223372036854775808}',
    '{"x": "\\ud800"}', '{"\\ud800": 1}', '{"x": "\\u0000"}', '{"\\u0000": 1}', '{"": ""}', '{"x": 1} {"y": 2}',
    "[" * 5_000 + "]" * 5_000, '{"x": ' + "[" * 970 + "]" * 970 + "}", '{"a":' * 5_000 + "1" + "}" * 5_000,
    '{"x": ' + "[" * 28 + "]" * 28 + "}", '{"x": ' + "[" * 40 + "]" * 40 + "}", '{"x": "' + "y" * 900_000 + '"}',
    '{"x": "' + "y" * 1_500_000 + '"}', '{"since_days": "7"}', '{"since_days": 1.5}', '{"since_days": null}',
    '{"since_days": true}', '{"since_days": {}}', '{"__class__": "x", "self": 1}', "{" + '"k":1,' * 50_000 + '"l":2}',
    "\ufeff{}", '{"since_days": 7}', "{}",
)  # fmt: skip

LARGE: Sequence[Value] = ("y" * 2_000_000, "y" * 10_000_000, '{"x": "' + "y" * 10_000_000 + '"}', "[" * 1_000_000)
"""Values near and above the largest request that Django reads. They are slow, so they are rare."""

KINDS: dict[str, Sequence[Value]] = {
    "date": DATES,
    "time": DATES,
    "finished": DATES,
    "_at": DATES,
    "zone": ZONES,
    "schedule": CRONS,
    "params": JSONS,
    "_id": NUMBERS,
    "count": NUMBERS,
    "retries": NUMBERS,
    "retry": NUMBERS,
    "limit": NUMBERS,
}
"""Values that suit a field. Each key is a part of the field's name."""

EVERYTHING: Sequence[Sequence[Value]] = (TEXTS, NUMBERS, DATES, CRONS, ZONES, JSONS)


def hostile(random: Random, name: str, keys: Sequence[str]) -> Value:
    """Return a hostile value for a field or a parameter. Half of the values suit its name.

    Args:
        keys: primary keys of rows of any table. They are valid numbers, but may name a row of another table.
    """
    if random.random() < 0.01:
        return random.choice(LARGE)
    if random.random() < 0.1:
        return random.choice(keys)
    fitting = [values for part, values in KINDS.items() if part in name]
    if fitting and random.random() < 0.6:
        return random.choice(random.choice(fitting))
    return random.choice(random.choice(EVERYTHING))


def as_bytes(value: Value) -> bytes:
    """Return the value as a client sends it. Half of a surrogate pair becomes three invalid bytes."""
    return value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")


def shown(value: Value) -> str:
    """Return a short description of the value for the message of a failure."""
    text = repr(value)
    return text if len(text) < 80 else f"{text[:40]}… ({len(value)} long)"
