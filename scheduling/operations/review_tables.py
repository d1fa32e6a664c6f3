"""A review in words: the verdict, the totals, and tables for the page and for the mail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.utils.formats import date_format, number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.core.review import Job, Review, Slow
from scheduling.core.review_range import DAYS, Range
from scheduling.core.tallies import BOUNDS
from scheduling.core.text import visible_text
from scheduling.models.labels import SKIP_REASONS, TYPES
from scheduling.models.schedule_names import shown_name
from scheduling.models.time_words import format_duration
from scheduling.models.visibility import Visibility

NAME_CHARS = 120


class Figure(NamedTuple):
    """One total. `note` compares it with the days before."""

    label: str
    value: str
    note: str
    is_bad: bool = False


class Column(NamedTuple):
    """A column of a table."""

    label: str
    is_number: bool = False


class Cell(NamedTuple):
    """One cell. `schedule` is the id of the schedule that the text names, if the reader sees it."""

    text: str
    schedule: int | None = None


@dataclass(frozen=True)
class Table:
    """One table of the review.

    Args:
        name: a short name, the same in each language.
        empty: a sentence instead of a table without rows.
        note: a sentence about rows that are not shown; empty if all are.
    """

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    empty: str
    note: str = ""

    @property
    def lines(self) -> list[list[tuple[Column, Cell]]]:
        """The rows, each cell with its column."""
        return [list(zip(self.columns, row, strict=True)) for row in self.rows]


def schedule_names(review: Review, visible: Visibility) -> dict[int, str]:
    """The names of the schedules that the review names and the reader sees, by their ids; empty without a name."""
    wanted = {job.schedule for job in (*review.new, *review.recovered) if job.schedule is not None}
    rows = visible.schedules().filter(pk__in=wanted).values_list("pk", "description", "name") if wanted else ()
    return {pk: visible_text(shown_name(text, name), NAME_CHARS) for pk, text, name in rows}


def days_in_words(days: Range) -> str:
    """The first and the last day, such as `16 Nov 2026 to 22 Nov 2026`."""
    first, last = (date_format(day, "j M Y") for day in (days.first, days.last))
    return first if days.first == days.last else _("%(first)s to %(last)s") % {"first": first, "last": last}


def verdict(review: Review) -> str:
    """The review in one sentence: `3 failures, 2 fewer than in the week before`."""
    if review.unread.keys() & {"days", "before"}:
        return _("the failures could not be counted")
    now, before = review.now.failures, review.before.failures
    count = ngettext("%(count)s failure", "%(count)s failures", now) % {"count": _number(now)} if now else ""
    facts = {"failures": count or _("no failures"), "change": _number(abs(now - before)), "days": _before(review.range)}
    if now == before:
        return (_("%(failures)s, as in %(days)s") if not now else _("%(failures)s, as many as in %(days)s")) % facts
    return (_("%(failures)s, %(change)s fewer than in %(days)s") if now < before else
            _("%(failures)s, %(change)s more than in %(days)s")) % facts  # fmt: skip


def _before(days: Range) -> str:
    count = len(days.days)
    if count == DAYS:
        return _("the week before")
    return ngettext("the day before", "the %(count)s days before", count) % {"count": count}


def figures(review: Review) -> list[Figure]:
    """The totals: runs, failures, retries, skipped occurrences."""
    now, before = review.now, review.before
    return [
        Figure(_("Runs"), _number(now.runs), _earlier(before.runs)),
        Figure(_("Failed for good"), _number(now.failures), _earlier(before.failures), bool(now.failures)),
        Figure(_("Retries"), _number(now.retries), _earlier(before.retries)),
        Figure(_("Retry share"), percent(now.retry_share), _earlier(percent(before.retry_share))),
        Figure(_("Skipped"), _number(now.skips), _earlier(before.skips)),
    ]  # fmt: skip


def _earlier(value: int | str) -> str:
    return _("before: %(value)s") % {"value": value if isinstance(value, str) else _number(value)}


def tables(review: Review, names: Mapping[int, str]) -> list[Table]:
    """All tables, in the order in which they are read. The longest one, that of the days, comes last."""
    failures = Column(_("Failed for good"), is_number=True)
    type_, target, reason = Column(_("Type")), Column(_("Target")), Column(_("Reason"))
    found = [
        ("failures", _("Failures by reason and target"),
         [reason, target, type_, failures, Column(_("Failed attempts"), True)],
         [[_cell(row.reason), _cell(row.target), _type(row.type), _count(row.failures), _count(row.failed)]
          for row in review.failures], _("Nothing failed.")),
        ("new", _("Newly failing"), [target, type_, Column(_("Schedule")), failures],
         [[*_job(job, names), _count(job.failures)] for job in review.new],
         _("Nothing fails that did not fail in %(days)s.") % {"days": _before(review.range)}),
        ("recovered", _("Recovered"),
         [target, type_, Column(_("Schedule")), Column(_("Failed before"), True), Column(_("Attempts since"), True)],
         [[*_job(job, names), _count(job.failures), _since(job)] for job in review.recovered],
         _("Nothing that failed in %(days)s has stopped failing.") % {"days": _before(review.range)}),
        ("slowest", _("Slowest targets"),
         [target, type_, Column(_("Attempts"), True), Column(_("Average"), True), Column(_("95 % within"), True)],
         [[_cell(row.target), _type(row.type), _count(row.attempts), Cell(format_duration(row.average)),
           Cell(_within(row))] for row in review.slowest], _("Nothing ran.")),
        ("skips", _("Skipped occurrences"), [reason, target, type_, Column(_("Skipped"), True)],
         [[Cell(str(SKIP_REASONS.get(row.reason, row.reason))), _cell(row.target), _type(row.type), _count(row.skips)]
          for row in review.skips], _("Nothing was skipped.")),
        ("alerts", _("Alerts"), [Column(_("Alert"))], [[_cell(line)] for line in review.alerts], _("No alerts.")),
        ("days", _("Retries by day and type"),
         [Column(_("Day")), type_, Column(_("Runs"), True), failures, Column(_("Retries"), True),
          Column(_("Retries per run"), True), Column(_("Share of attempts"), True)],
         [[Cell(date_format(row.day, "D j M")), _type(row.type), _count(row.totals.runs), _count(row.totals.failures),
           _count(row.totals.retries), Cell(number_format(row.totals.retries_per_run, 2)),
           Cell(percent(row.totals.retry_share))] for row in review.days if row.totals.attempts],
         _("Nothing ran.")),
    ]  # fmt: skip
    return [Table(name, title, columns, rows, empty, _note(review, name))
            for name, title, columns, rows, empty in found if name != "alerts" or rows]  # fmt: skip


def notes(review: Review) -> list[str]:
    """What the review leaves out, in sentences."""
    found = []
    if review.left_out:
        text = ngettext(
            "%(count)s tally is left out, because its values cannot be used.",
            "%(count)s tallies are left out, because their values cannot be used.", review.left_out,
        )  # fmt: skip
        found.append(text % {"count": _number(review.left_out)})
    if most := review.more.get("jobs"):
        found.append(_("Only the %(most)s targets with the most failures are compared with the days before.")
                     % {"most": _number(most)})  # fmt: skip
    found += [
        _("A part of the review could not be read (%(name)s): %(error)s") % {"name": name, "error": error}
        for name, error in review.unread.items()
    ]
    return found


def percent(share: float) -> str:
    """A share as text: `12 %`, or `0.4 %` below one percent."""
    number = 100 * share
    return _("%(number)s %%") % {"number": number_format(number, 1 if 0 < number < 1 else 0)}


def _note(review: Review, name: str) -> str:
    if not (count := review.more.get(name)):
        return ""
    return ngettext("And %(count)s more.", "And %(count)s more.", count) % {"count": _number(count)}


def _job(job: Job, names: Mapping[int, str]) -> Iterable[Cell]:
    yield _cell(job.target)
    yield _type(job.type)
    if job.schedule is None:
        yield Cell(_("no schedule"))
    elif job.schedule in names:
        yield Cell(names[job.schedule] or _("schedule %(id)s") % {"id": job.schedule}, job.schedule)
    else:
        yield Cell(_("schedule %(id)s") % {"id": job.schedule})


def _since(job: Job) -> Cell:
    return _count(job.attempts) if job.attempts else Cell(_("none"))


def _within(row: Slow) -> str:
    if row.p95 is None:
        return _("over %(time)s") % {"time": format_duration(BOUNDS[-1])}
    return format_duration(row.p95)


def _type(type_: str) -> Cell:
    return Cell(str(TYPES.get(type_, type_)))


def _cell(text: str) -> Cell:
    return Cell(visible_text(text, NAME_CHARS))


def _count(number: int) -> Cell:
    return Cell(_number(number))


def _number(number: int) -> str:
    return number_format(number, force_grouping=True)
