"""Cron expressions that could make the code slow: long lists, long texts and rare dates."""

from __future__ import annotations

CRAFTED = [
    ",".join(["0-59/1"] * 35) + " * * * *",
    "0," * 120 + "0 * * * *",
    "0-" * 100 + " * * * *",
    "9" * 250 + " * * * *",
    "*" * 255,
    "(" * 255,
    "0 " * 127,
    "*/59 */23 */31 */12 */7",
    "0 0 31 2 *",
    "0 0 31 2,4,6,9,11 *",
    "0 0 29 2 5#5",
    "0 0 29 2 6",
    "0 0 30 2 1",
    "0 0 * * 1#5,2#5,3#5,4#5,5#5",
    "@every " + "9" * 240 + "m",
    "@every " + "1m" * 120,
    "@every 1s from 0001-01-01T00:00Z",
    "@every 522w on " + "fri," * 50 + "mon",
    "@every 1d from 9999-12-31",
    "@every" + " from" * 40,
]
