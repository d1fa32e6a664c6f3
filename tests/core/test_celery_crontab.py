"""Crontabs as Celery reads them, and how they are said in our dialect."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from random import Random

import pytest

from scheduling.core.celery_crontab import CeleryCrontab, CeleryCrontabError, parse_celery
from scheduling.core.celery_days import CannotSay, expressions, listed
from scheduling.core.celery_instants import BeatSpan, Differences, beat_instants, differences
from scheduling.core.celery_spelling import spellings
from scheduling.core.timetables import parse
from scheduling.core.zones import zone
from tests.hostile.fuzz import choose_seed

NOW = datetime(2026, 11, 26, 5, 3, tzinfo=UTC)


def crontab(text: str) -> CeleryCrontab:
    """Five fields in the order of cron."""
    return parse_celery(*text.split(" "))


@pytest.mark.parametrize(
    ("field", "weekdays"),
    [
        ("*", range(7)),
        ("*/2", (0, 2, 4, 6)),
        ("*/9", (0,)),
        ("fri-mon", (5, 6, 0, 1)),
        ("fri-mon/2", (5, 0)),
        ("Monday,3", (1, 3)),
        ("1-5/2", (1, 3, 5)),
        ("jan", (1,)),  # Celery reads names of months in each field
        ("*,1", range(7)),
    ],
)
def test_a_field_means_what_celery_means_by_it(field: str, weekdays: tuple[int, ...]) -> None:
    assert crontab(f"0 0 * * {field}").weekdays == set(weekdays)


def test_only_a_number_alone_may_have_spaces() -> None:
    assert parse_celery("1, 2 ,3", "0", "*", "*", "*").minutes == {1, 2, 3}
    with pytest.raises(CeleryCrontabError, match="Minute: ' 1-5' cannot be read"):
        parse_celery("0, 1-5", "0", "*", "*", "*")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("60 0 * * *", "Minute: '60' is outside 0-59"),
        ("0 0 * * 7", "Weekday: '7' is outside 0-6"),
        ("0 0 0 * *", "Day of month: '0' is outside 1-31"),
        ("5/10 0 * * *", "a step needs a range or a star"),
        ("*/0 0 * * *", "the step of '\\*/0' is 0"),
        ("1,,2 0 * * *", "an item of the list is empty"),
        ("*/5-3 0 * * *", "cannot be read"),
        ("monk 0 * * *", "no number and no name"),
        ("0 0 31 4,6 *", "it never runs"),
        ("\u0663 0 * * *", "cannot be read"),
    ],
)
def test_a_field_that_celery_cannot_read_or_reads_by_chance_is_refused(text: str, said: str) -> None:
    with pytest.raises(CeleryCrontabError, match=said):
        crontab(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("*/5 8-17 * * mon-fri", ["*/5 8-17 * * 1-5"]),
        ("0 22-2 * * *", ["0 0-2,22,23 * * *"]),
        ("0 0 * nov-feb fri-mon", ["0 0 * 1,2,11,12 0,1,5,6"]),
        ("0 */30 * * *", ["0 0 * * *"]),
        ("0 8 1-7 * 1", ["0 8 * * 1#1"]),
        ("0 8 1-7,15-21 * mon,wed", ["0 8 * * 1#1,1#3,3#1,3#3"]),
        ("0 8 29-31 * 1", ["0 8 * * 1#5"]),
        ("0 8 1 * 1", ["0 8 */31 * 1"]),
        ("0 8 13 * 0", ["0 8 13 * */7"]),
        ("0 8 13 * sat,sun", ["0 8 13 * */6"]),
        ("0 8 */2 * 1", ["0 8 */2 * 1"]),
        ("0 8 1,8-14 * 1", ["0 8 */31 * 1", "0 8 * * 1#2"]),
        ("0 8 29-30 4,6 1", ["0 8 * 4,6 1#5"]),
        ("0 8 1-30 2,4 1", ["0 8 * 2,4 1"]),
        ("0 8 1-29 2,3 0", ["0 8 * 2 0", "0 8 1-29 3 */7"]),
        ("0 8 31 2,3 *", ["0 8 31 3 *"]),
    ],
)
def test_both_day_fields_are_said_exactly(text: str, said: list[str]) -> None:
    assert expressions(crontab(text)) == said


@pytest.mark.parametrize("text", ["0 8 13 * 5", "0 8 1-10 * 1", "0 8 29-30 * 1", "0 8 2,9-15 * 3"])
def test_days_that_cannot_be_said_are_refused_and_never_approximated(text: str) -> None:
    with pytest.raises(CannotSay, match="Write a schedule for the days, with a calendar"):
        expressions(crontab(text))


@pytest.mark.long
def test_each_day_that_is_said_is_one_of_the_crontab_and_belongs_to_one_expression() -> None:
    random, said = Random(choose_seed()), 0
    first = date(2027, 1, 1)
    for _number in range(150):
        some = random.choice((range(1, 8), range(8, 15), range(1, 32, random.randint(2, 31)), range(1, 31)))
        days = {*some, *random.sample(range(1, 32), random.choice((0, 0, 1, 3)))}
        text = f"0 8 {listed(days)} {listed(random.sample(range(1, 13), random.randint(1, 4)))} "
        found = crontab(text + listed(random.sample(range(7), random.randint(1, 6))))
        try:
            crons = [parse(one) for one in expressions(found)]
        except CannotSay:
            continue
        said += 1
        for number in range(731):  # with the leap day of 2028
            day = first + timedelta(days=number)
            matched = sum(cron.first_day(day) == day for cron in crons)  # type: ignore[union-attr]
            assert matched == found.matches(day), (found.texts, day)
    assert said > 30


@pytest.mark.parametrize(
    ("text", "ours", "only_beat", "only_ours"),
    [
        ("0 8 * * *", "0 8 * * *", [], []),
        # In a skipped hour, beat goes on by the former offset.
        (
            "30 2 * * *", "30 2 * * *",
            ["2027-03-28T01:30", "2028-03-26T01:30"], ["2027-03-28T01:00", "2028-03-26T01:00"],
        ),
        (
            "0 */2 * * *", "0 */2 * * *",
            ["2027-03-28T01:00", "2028-03-26T01:00"], ["2027-10-31T01:00", "2028-10-29T01:00"],
        ),
        # In a repeated hour, beat runs only in the first pass.
        (
            "*/30 * * * *", "*/30 * * * *",
            [], ["2027-10-31T01:00", "2027-10-31T01:30", "2028-10-29T01:00", "2028-10-29T01:30"],
        ),
        ("*/30 * * * *", "0-59/30 0-23 * * *", [], []),
    ],
)  # fmt: skip
def test_the_instants_that_differ_when_the_clocks_change(
    text: str, ours: str, only_beat: list[str], only_ours: list[str]
) -> None:
    found = differences(crontab(text), [ours], "Europe/Madrid", NOW, NOW + timedelta(days=731))
    assert [f"{one:%Y-%m-%dT%H:%M}" for one in found.only_beat] == only_beat
    assert [f"{one:%Y-%m-%dT%H:%M}" for one in found.only_ours] == only_ours


def test_expressions_with_other_local_times_are_an_error() -> None:
    for wrong in ("1 8 * * *", "0 8 * * 1", "0 8,9 * * *"):
        with pytest.raises(ValueError, match="does not mean the times"):
            differences(crontab("0 8 * * *"), [wrong], "UTC", NOW, NOW + timedelta(days=31))
    with pytest.raises(ValueError, match="does not mean the times"):  # the days of one are those of the other, too
        differences(crontab("0 8 * * *"), ["0 8 * * *", "0 8 * * 1"], "UTC", NOW, NOW + timedelta(days=31))


def test_the_start_time_is_left_out_by_beat_and_one_run_is_compared_alone() -> None:
    start = datetime(2027, 1, 4, 8, tzinfo=UTC)
    until = NOW + timedelta(days=731)
    at_eight = crontab("0 8 * * *")
    assert BeatSpan(start).differences(at_eight, ["0 8 * * *"], "UTC", NOW, until) == Differences((), (start,))
    earlier = BeatSpan(start - timedelta(minutes=1), one_off=True)
    assert not earlier.differences(at_eight, ["0 8 * * *"], "UTC", NOW, until)
    once = BeatSpan(start, one_off=True).differences(at_eight, ["0 8 * * *"], "UTC", NOW, until)
    assert once == Differences((start + timedelta(days=1),), (start,))
    over = BeatSpan(expires=datetime(2027, 3, 1, tzinfo=UTC))
    assert not over.differences(crontab("30 2 * * *"), ["30 2 * * *"], "Europe/Madrid", NOW, until)


def test_beat_goes_on_after_a_year_without_a_run() -> None:
    leap = list(beat_instants(crontab("0 0 29 2 *"), zone("UTC"), NOW, NOW + timedelta(days=9 * 366)))
    assert [one.year for one in leap] == [2028, 2032]


def test_spellings_change_only_the_rule_for_clock_changes() -> None:
    assert list(spellings(["*/20 * * * *"])) == [["0-59/20 0-23 * * *"]]
    assert list(spellings(["5 0-23 * * 1"])) == [["5 * * * 1"]]
    assert list(spellings(["5 8 * * 1"])) == []
    assert list(spellings(["0-59/7,3 8 * * 1"])) == []
