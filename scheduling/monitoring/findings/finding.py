"""A finding is the result of one check, with advice. The doctor and the dashboard show the same findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from django.db.models import QuerySet

from scheduling.models.counts import Count, count

NAMED_ROWS = 5
"""The maximum number of rows that a finding names. All further rows are only counted."""


class Level(StrEnum):
    """Severity of a finding."""

    OK = "ok"
    WARN = "warn"
    """The installation works or will recover without help, but an operator should know about the finding."""
    FAIL = "fail"
    """Runs are late, are lost, or cannot start until an operator acts."""


@dataclass(frozen=True)
class Named:
    """A row that a finding names.

    Args:
        name: the row's name.
        about: what is wrong with the row, in a few words.
        pk: the row's primary key if the row has a page of its own, otherwise None.
        key: the value by which a list is filtered to show this row, if `name` is not the name of one row.
        count: how many rows have this key.
    """

    name: str
    about: str
    pk: int | None = None
    key: str = ""
    count: int = 1


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Args:
        check: a short, stable name for scripts.
        seen: a sentence with the facts, without passwords.
        advice: what to do; empty when there is nothing to do.
        rows: the first rows that the finding is about.
        more: how many further rows there are.
    """

    check: str
    level: Level
    seen: str
    advice: str = ""
    rows: Sequence[Named] = ()
    more: Count | None = None

    @property
    def in_full(self) -> str:
        """The facts and the named rows as one text, for a terminal or a script."""
        names = [f"{row.name} ({row.about})" for row in self.rows]
        rest = f" and {self.more} more" if self.more else ""
        return f"{self.seen} {', '.join(names)}{rest}." if names else self.seen


def ok(check: str, seen: str) -> Finding:
    """A finding that requires no action."""
    return Finding(check, Level.OK, seen)


def warn(check: str, seen: str, advice: str) -> Finding:
    """A finding that an operator should know about."""
    return Finding(check, Level.WARN, seen, advice)


def fail(check: str, seen: str, advice: str) -> Finding:
    """A finding that an operator must act on."""
    return Finding(check, Level.FAIL, seen, advice)


def named(
    finding: Finding,
    rows: QuerySet[Any] | Sequence[Any],
    describe: Callable[[Any], Named],
    fine: str = "",
    load: Callable[[list[Any]], None] | None = None,
    total: Count | None = None,
    **facts: object,
) -> Iterator[Finding]:
    """Yield the finding with the names of the first rows and the number of all rows.

    Args:
        finding: the finding to complete. The sentence `finding.seen` may contain the placeholder `%(count)s` and a
            placeholder for each of `facts`.
        rows: the rows, or a query of which only the first rows are read.
        describe: makes the `Named` of a row.
        fine: the sentence of the OK finding that is yielded if there are no rows. If there are no rows and this
            sentence is empty, nothing is yielded.
        load: reads what `describe` needs of the first rows from other tables.
        total: how many rows there are, if that is known.
    """
    first = list(rows[: NAMED_ROWS + 1]) if total is None or total else []
    if load is not None:
        load(first)
    shown = [describe(row) for row in first[:NAMED_ROWS]]
    if first:
        if len(first) <= NAMED_ROWS:
            total = Count(len(first))
        elif not total:
            total = _total(rows)
        more = Count(total.number - len(shown), total.capped)
        yield replace(finding, seen=finding.seen % {"count": total, **facts}, rows=shown, more=more)
    elif fine:
        yield ok(finding.check, fine)


def _total(rows: QuerySet[Any] | Sequence[Any]) -> Count:
    return count(rows) if isinstance(rows, QuerySet) else Count(len(rows))


def severity(finding: Finding) -> int:
    """The finding's level as a number: 0 for OK, and higher for a worse level."""
    return list(Level).index(finding.level)


def worst(findings: Iterable[Finding]) -> Level:
    """The worst level of the findings; OK if there are no findings."""
    return max(findings, key=severity, default=ok("", "")).level


def some(names: Iterable[str], most: int = 3) -> str:
    """The first names and the number of further names, such as `a, b, c and 4 more`."""
    listed = list(names)
    shown = ", ".join(listed[:most])
    return shown if len(listed) <= most else f"{shown} and {len(listed) - most} more"


def counted(number: int, noun: str, plural: str = "") -> str:
    """The number with the noun in singular or plural, such as `1 schedule` or `2 schedules`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def words(error: BaseException) -> str:
    """The text of a driver's error in one line, without the error number that MySQL's driver puts first."""
    text = error.args[1] if len(error.args) == 2 and isinstance(error.args[0], int) else error
    return " ".join(str(text).split())
