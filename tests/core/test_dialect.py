"""The tests check what cron expressions mean, and which error messages invalid expressions give."""

from __future__ import annotations

import pickle
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.core.cron import Cron, CronError, parse
from scheduling.core.days import count_days, first_day
from tests.core import brute
from tests.support import examples

DAY = timedelta(days=1)


def outcome(expression: str) -> Cron | CronError:
    try:
        return parse(expression)
    except CronError as error:
        return error


@pytest.mark.parametrize(
    ("written", "normalised", "interval"),
    [
        ("* * * * *", "* * * * *", True),
        ("*/5 3 * * *", "*/5 3 * * *", True),
        ("0 * * * *", "0 * * * *", True),
        ("0 */2 * * *", "0 */2 * * *", True),
        ("30 2 * * *", "30 2 * * *", False),
        ("0 0-23 * * *", "0 0-23 * * *", False),
        ("0-59 0 * * *", "0-59 0 * * *", False),
        ("  0\t9  *  * MON-FRI ", "0 9 * * MON-FRI", False),
        ("@hourly", "0 * * * *", True),
        ("@daily", "0 0 * * *", False),
        (" @Daily ", "0 0 * * *", False),
        ("@midnight", "0 0 * * *", False),
        ("@weekly", "0 0 * * 0", False),
        ("@monthly", "0 0 1 * *", False),
        ("@yearly", "0 0 1 1 *", False),
        ("@annually", "0 0 1 1 *", False),
    ],
)
def test_an_expression_is_normalised_and_classified_as_interval_or_fixed(
    written: str, normalised: str, interval: bool
) -> None:
    cron = parse(written)

    assert (cron.expression, cron.interval) == (normalised, interval)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("5", (5,)),
        ("05", (5,)),
        ("1,3,3,2", (1, 2, 3)),
        ("10-12", (10, 11, 12)),
        ("5-5", (5,)),
        ("05-5", (5,)),
        ("0-59/20", (0, 20, 40)),
        ("50-51/15", (50,)),
        ("*/20", (0, 20, 40)),
        ("*/60", (0,)),
        ("10/20", (10, 30, 50)),
        ("59/15", (59,)),
        ("1,10-30/10,58/1", (1, 10, 20, 30, 58, 59)),
    ],
)
def test_minutes(text: str, minutes: tuple[int, ...]) -> None:
    assert parse(f"{text} 0 * * *").minutes == minutes


@pytest.mark.parametrize(
    ("text", "weekdays"),
    [
        ("0", (0,)),
        ("7", (0,)),
        ("7-7", (0,)),
        ("sun", (0,)),
        ("Mon", (1,)),
        ("MON-MON", (1,)),
        ("5-7", (0, 5, 6)),
        ("0-7", (0, 1, 2, 3, 4, 5, 6)),
        ("1-7/2", (0, 1, 3, 5)),
        ("1/2", (1, 3, 5)),
        ("*/2", (0, 2, 4, 6)),
        ("6/1", (6,)),
        ("mon-fri", (1, 2, 3, 4, 5)),
    ],
)
def test_sunday_is_weekday_0_and_7(text: str, weekdays: tuple[int, ...]) -> None:
    assert parse(f"0 0 * * {text}").weekdays == weekdays


@pytest.mark.parametrize(
    ("text", "months"),
    [("feb", (2,)), ("JAN-MAR", (1, 2, 3)), ("*/5", (1, 6, 11)), ("DEC/3", (12,)), ("nov-12", (11, 12))],
)
def test_months(text: str, months: tuple[int, ...]) -> None:
    assert parse(f"0 0 1 {text} *").months == months


@pytest.mark.parametrize(
    ("dates", "of_2026"),
    [
        # Day of the month and weekday: a date must match one of the two fields. If one of them begins with a star, the
        # date must match both. 13 February 2026 is a Friday.
        ("13 * 5", ["02-06", "02-13", "02-20", "02-27"]),
        ("13 * *", ["02-13"]),
        ("* * 5", ["02-06", "02-13", "02-20", "02-27"]),
        ("*/2 * 1", ["02-09", "02-23"]),
        ("*/1 * 1", ["02-02", "02-09", "02-16", "02-23"]),
        ("9,10 * */2", ["02-10"]),
        ("31 * 1", ["02-02", "02-09", "02-16", "02-23"]),
        # A range of all values is not a star, so a date must match only one of the fields.
        ("13 * 0-6", [f"02-{day:02}" for day in range(1, 29)]),
        ("1-31 * 5", [f"02-{day:02}" for day in range(1, 29)]),
        ("13 */3 *", []),
        # The last day of the month, and the k-th weekday of the month.
        ("L * *", ["02-28"]),
        ("l * *", ["02-28"]),
        ("1,L,15 * *", ["02-01", "02-15", "02-28"]),
        ("L * 5", ["02-06", "02-13", "02-20", "02-27", "02-28"]),
        ("L * */2", ["02-28"]),
        ("* * 5#2", ["02-13"]),
        ("* * fri#1,FRI#3", ["02-06", "02-20"]),
        ("* * 7#1,0#4", ["02-01", "02-22"]),
        ("* * 1#5", []),
    ],
)
def test_dates(dates: str, of_2026: list[str]) -> None:
    calendar = parse(f"0 0 {dates}").calendar

    february = [date(2026, 2, day) for day in range(1, 29)]
    assert [f"{day:%m-%d}" for day in february if first_day(calendar, day) == day] == of_2026
    assert count_days(calendar, february[0], date(2026, 3, 1)) == len(of_2026)


def test_29_february_is_found_after_the_year_2100() -> None:
    assert first_day(parse("0 0 29 2 *").calendar, date(2096, 3, 1)) == date(2104, 2, 29)


def test_the_rarest_date_is_still_found() -> None:
    # This expression means 29 February if the day is a Sunday. Such a day usually comes every 28 years. 2100 is no leap
    # year, so 2128 follows 2088.
    calendar = parse("0 0 29 2 */7").calendar

    assert first_day(calendar, date(2060, 3, 1)) == date(2088, 2, 29)
    assert first_day(calendar, date(2088, 3, 1)) == date(2128, 2, 29)


def test_the_calendar_ends_with_the_year_9999() -> None:
    assert first_day(parse("0 0 1 1 *").calendar, date(9999, 1, 2)) is None
    assert first_day(parse("0 0 L * *").calendar, date(9999, 12, 31)) == date(9999, 12, 31)


MINUTE, HOUR, DOM, MONTH, DOW = "minute", "hour", "day of month", "month", "weekday"
REFUSED = [
    # the whole expression
    ("", None, "Write five fields"),
    ("* * * *", None, "not 4"),
    ("0 0 12 * * *", None, "not 6; seconds and years are not supported"),
    ("0 0 12 * * * 2026", None, "not 7"),
    ("@reboot", None, "'@reboot' is not an alias; use one of @yearly,"),
    ("@every5m", None, "'@every5m' is not an alias"),
    ("@reboot", None, "or an interval such as '@every 90m'."),
    ("@daily * * * *", None, "is not an alias"),
    ("0 9 * * \u0661", None, "not plain ASCII"),
    ("0 9\u00a0* * *", None, "not plain ASCII"),
    ("0 9 * * 1\n", None, "not plain ASCII"),
    ("0 9 * * 1\x00", None, "not plain ASCII"),
    ("0" + " " * 300 + "0 * * *", None, "shorten it to at most 255"),
    # numbers
    ("60 * * * *", MINUTE, "Minute: '60' is outside 0-59."),
    ("0 24 * * *", HOUR, "Hour: '24' is outside 0-23."),
    ("0 0 0 * *", DOM, "Day of month: '0' is outside 1-31."),
    ("0 0 32 * *", DOM, "outside 1-31"),
    ("0 0 1 0 *", MONTH, "outside 1-12"),
    ("0 0 1 13 *", MONTH, "outside 1-12"),
    ("0 0 * * 8", DOW, "outside 0-7"),
    ("0 0-24 * * *", HOUR, "'24' is outside 0-23."),
    ("-5 * * * *", MINUTE, "'-5' is not understood"),
    ("1.5 * * * *", MINUTE, "'1.5' is not understood"),
    ("1e1 * * * *", MINUTE, "'1e1' is not understood"),
    ("1_0 * * * *", MINUTE, "'1_0' is not understood"),
    ("x * * * *", MINUTE, "write a number 0-59."),
    ("mon * * * *", MINUTE, "'mon' is not understood"),
    ("0 0 * * monday", DOW, "'monday' is not understood; write a number 0-7 or a name such as 'sun'."),
    ("0 0 1 mon *", MONTH, "or a name such as 'jan'"),
    # ranges
    ("50-10 * * * *", MINUTE, "'50-10' runs backwards; use 50-59,0-10."),
    ("0 22-2 * * *", HOUR, "use 22-23,0-2."),
    ("0 23-0 * * *", HOUR, "use 23,0."),
    ("0 22-2/2 * * *", HOUR, "use 22,0,2."),
    ("0 0 1 nov-feb *", MONTH, "use 11-12,1-2."),
    ("0 0 * * sat-sun", DOW, "'sat-sun' runs backwards; use 6-7."),
    ("0 0 * * fri-mon", DOW, "use 5,6,0,1."),
    ("0 0 * * 5-1", DOW, "use 5,6,0,1."),
    ("0 0 * * 7-1", DOW, "use 0,1."),
    ("0 0 * * 7-sun", DOW, "use 0."),
    ("0 0 * * fri-sun/2", DOW, "use 5,0."),
    ("1-2-3 * * * *", MINUTE, "'1-2-3' is not understood"),
    ("1- * * * *", MINUTE, "'1-' is not understood"),
    # lists
    ("*,5 * * * *", MINUTE, "'*' cannot stand in a list; write '*' alone, or a range such as 0-59."),
    ("*,* * * * *", MINUTE, "'*' cannot stand in a list"),
    ("5,*/10 * * * *", MINUTE, "'*' cannot stand in a list"),
    ("0 0 L,* * *", DOM, "'*' cannot stand in a list"),
    ("1,,2 * * * *", MINUTE, "an item of the list is empty"),
    (",1 * * * *", MINUTE, "an item of the list is empty"),
    ("1, * * * *", MINUTE, "an item of the list is empty"),
    # steps
    ("*/0 * * * *", MINUTE, "the step '0' must be a number 1-60."),
    ("5-5/0 * * * *", MINUTE, "the step '0'"),
    ("*/90 * * * *", MINUTE, "the step '90' must be a number 1-60."),
    ("0 */25 * * *", HOUR, "must be a number 1-24."),
    ("0 0 */32 * *", DOM, "must be a number 1-31."),
    ("0 0 1 */13 *", MONTH, "must be a number 1-12."),
    ("0 0 * * */8", DOW, "must be a number 1-7."),
    ("*/x * * * *", MINUTE, "the step 'x'"),
    ("*/ * * * *", MINUTE, "'*/' is not understood"),
    ("/5 * * * *", MINUTE, "'/5' is not understood"),
    ("*/5/5 * * * *", MINUTE, "'*/5/5' is not understood"),
    ("*-5 * * * *", MINUTE, "'*' is not understood"),
    ("** * * * *", MINUTE, "'**' is not understood"),
    ("0 0 * * 7/2", DOW, "begins at the end of the week"),
    # forms of other cron programs
    ("H * * * *", MINUTE, "'H' (a value chosen by the program) is not supported"),
    ("H/15 * * * *", MINUTE, "chosen by the program"),
    ("h(0-5) * * * *", MINUTE, "chosen by the program"),
    ("R * * * *", MINUTE, "chosen by the program"),
    ("0 R(1-5)/2 * * *", HOUR, "chosen by the program"),
    ("0 0 ? * 1", DOM, "'?' is not supported; write '*'."),
    ("0 0 * * ?", DOW, "'?' is not supported"),
    ("0 0 15W * *", DOM, "'15W' is not supported"),
    ("0 0 W15 * *", DOM, "not"),
    ("0 0 LW * *", DOM, "'LW' is not supported; only a day of month may be 'L', the last of the month."),
    ("0 0 L-3 * *", DOM, "'L-3' is not supported"),
    ("0 0 1-L * *", DOM, "'1-L' is not supported"),
    ("0 0 L/2 * *", DOM, "'L/2' is not supported"),
    ("0 0 5L * *", DOM, "'5L' is not supported"),
    ("0 0 * * 5L", DOW, "'5L' is not supported; only a day of month may be 'L'"),
    ("0 0 * * L5", DOW, "'L5' is not supported"),
    ("0 0 * * L", DOW, "'L' is not supported"),
    ("L * * * *", MINUTE, "'L' is not supported"),
    # the k-th weekday of the month
    ("0 0 * * 1#0", DOW, "the number after '#' in '1#0' must be 1-5."),
    ("0 0 * * 1#6", DOW, "must be 1-5"),
    ("0 0 * * 1#", DOW, "must be 1-5"),
    ("0 0 * * #1", DOW, "'' is not understood"),
    ("0 0 * * 8#1", DOW, "outside 0-7"),
    ("0 0 * * 1#1#1", DOW, "must be 1-5"),
    ("0 0 * * mon-fri#2", DOW, "'mon-fri' is not understood"),
    ("0 0 * * *#2", DOW, "'*' is not understood"),
    ("0 0 * * 1,5#2", DOW, "days with and without '#' cannot be mixed"),
    ("0 0 13 * 5#2", DOM, "with '#' in the weekday it must be '*', not '13'."),
    ("0 0 */2 * 5#2", DOM, "it must be '*'"),
    ("0 1#2 * * *", HOUR, "only a weekday may have '#'"),
    # dates that never come
    ("0 0 31 2 *", DOM, "no date ever matches '31 2 *', so this would never fire"),
    ("0 0 30 2 *", DOM, "never fire"),
    ("0 0 31 4,6,9,11 *", DOM, "never fire"),
    ("0 0 31 2 */2", DOM, "never fire"),
]


@pytest.mark.parametrize(("expression", "field", "words"), REFUSED)
def test_the_error_message_names_the_field_and_the_solution(expression: str, field: str | None, words: str) -> None:
    with pytest.raises(CronError) as caught:
        parse(expression)

    assert words in str(caught.value)
    assert caught.value.field == field
    assert field is None or str(caught.value).startswith(f"{field.capitalize()}: ")
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize("expression", ["0 0 31 2 1", "0 0 29 2 *", "0 0 * 2 1#5", "0 0 30,31 2,3 *"])
def test_rare_dates_are_accepted(expression: str) -> None:
    assert parse(expression).expression == expression


@pytest.mark.parametrize("hint", ["50-59,0-10", "22-23,0-2", "23,0", "22,0,2"])
def test_the_suggested_ranges_are_valid(hint: str) -> None:
    assert parse(f"{hint} 0 * * *" if "5" in hint else f"0 {hint} * * *")


def test_long_expressions_are_refused_with_a_short_error_message() -> None:
    for expression in ("1," * 250_000 + "1 * * * *", "9" * 250 + " * * *", "1-" * 120 + " * * * *", "," * 240):
        with pytest.raises(CronError) as caught:
            parse(expression)

        assert len(str(caught.value)) < 400


def test_errors_are_not_cached() -> None:
    before = parse.cache_info().currsize
    for number in range(100):
        with pytest.raises(CronError):
            parse(f"{60 + number} * * * *")

    assert parse.cache_info().currsize == before
    assert parse.cache_info().maxsize is not None


def test_a_parsed_expression_is_an_immutable_value() -> None:
    daily = parse("0 0 * * *")

    assert parse("@daily") == daily
    assert len({parse("@daily"), daily, parse("@midnight"), parse("0 1 * * *")}) == 2
    assert pickle.loads(pickle.dumps(daily)) == daily  # noqa: S301 - our own bytes
    with pytest.raises(AttributeError):
        daily.expression = "* * * * *"  # type: ignore[misc]


@pytest.mark.long
@examples(600)
@given(brute.expressions, st.dates(date(1971, 1, 1), date(2110, 1, 1)))
def test_every_valid_expression_means_the_same_as_in_brute(expression: str, start: date) -> None:
    matcher = brute.Matcher(expression)
    stretch = [start + day * DAY for day in range(400)]
    expected = [day for day in stretch if matcher.matches_day(day)]

    cron = outcome(expression)

    if isinstance(cron, CronError):
        # `brute.expressions` makes only valid fields, but also dates that do not exist, such as 30 February.
        assert "never fire" in str(cron)
        assert not expected
        return
    minutes, hours = brute.times_of(expression)
    assert (set(cron.minutes), set(cron.hours)) == (minutes, hours)
    assert cron.interval == matcher.interval
    assert count_days(cron.calendar, start, stretch[-1] + DAY) == len(expected)
    if expected:
        assert first_day(cron.calendar, start) == expected[0]
        assert first_day(cron.calendar, expected[-1]) == expected[-1]


_garbage = st.text(st.sampled_from("0123456789*/-,#LWHR?@ \tabcdefmnorstuy()\u0660\u00a0\n"), max_size=40)


@examples(800)
@given(_garbage | st.text(max_size=300) | st.lists(_garbage, min_size=5, max_size=5).map(" ".join))
def test_any_text_has_an_error_message_or_is_an_expression(text: str) -> None:
    result = outcome(text)

    if isinstance(result, CronError):
        assert str(result).endswith(".")
        assert result.field in {None, MINUTE, HOUR, DOM, MONTH, DOW}
    else:
        assert parse(result.expression) == result


class TestFlawsOfCroniter:
    """Expressions that croniter 7.0 reads wrongly if it is used without our code."""

    def test_a_range_with_equal_ends_is_one_value(self) -> None:
        assert parse("5-5 * * * *").minutes == (5,)
        assert parse("0 0-0 * * *").hours == (0,)
        assert parse("0 0 * * MON-MON").calendar == "* * 1"
        assert parse("0 0 1-1 3-3 *").calendar == "1 3 *"
        assert parse("5-5/3 * * * *").minutes == (5,)

    def test_a_star_with_a_step_restricts_the_other_day_field(self) -> None:
        # This expression means the Mondays with an odd day of the month: 1 June 2026, then 15 June 2026.
        calendar = parse("0 0 */2 * 1").calendar

        assert first_day(calendar, date(2026, 6, 1)) == date(2026, 6, 1)
        assert first_day(calendar, date(2026, 6, 2)) == date(2026, 6, 15)

    def test_a_date_that_never_comes_is_refused(self) -> None:
        assert first_day(parse("0 0 31 2 1").calendar, date(2026, 1, 1)) == date(2026, 2, 2)
        with pytest.raises(CronError, match="never fire"):
            parse("0 0 31 2 *")

    @pytest.mark.parametrize(
        "expression",
        [
            pytest.param("0 0 13 * 5#2", id="nth-with-day"),
            pytest.param("0 0 15W * 1", id="nearest-weekday"),
            pytest.param("R R * * *", id="random"),
            pytest.param("0 22-2 * * *", id="reversed-hours"),
            pytest.param("50-10 * * * *", id="reversed-minutes"),
            pytest.param("0 0 1 nov-feb *", id="reversed-months"),
            pytest.param("*/90 * * * *", id="step-beyond-the-field"),
            pytest.param("*,5 * * * *", id="star-in-list"),
            pytest.param("*,* * * * *", id="two-stars"),
            pytest.param("0 0 12 * * 30", id="seconds"),
            pytest.param("0 0 1 1 * 0 2099", id="years"),
            pytest.param("1," * 200_000 + "1 * * * *", id="length"),
            pytest.param("0 0 * * L5", id="last-weekday"),
            pytest.param("0 0 * * 1,5#2", id="mixed"),
            pytest.param("@reboot", id="alias"),
        ],
    )
    def test_ambiguous_or_costly_forms_are_refused(self, expression: str) -> None:
        with pytest.raises(CronError):
            parse(expression)

    def test_an_alias_may_have_spaces_around_it(self) -> None:
        assert parse(" @daily ") == parse("@daily")
