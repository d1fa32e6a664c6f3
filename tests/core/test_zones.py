"""The tests check which names of time zones are valid, and which instant a local time means."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.core.zones import ZoneError, clock_changes, resolve_again, resolve_wall, zone, zone_names
from tests.core.brute import utc
from tests.support import examples


@pytest.mark.parametrize("name", ["UTC", "Europe/Madrid", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "EST"])
def test_iana_names_are_zones(name: str) -> None:
    assert zone(name).key == name
    assert name in zone_names()


def test_an_error_names_the_nearest_zone() -> None:
    for name, nearest in (("berlin", "Europe/Berlin"), ("no such place", "")):
        with pytest.raises(ZoneError) as caught:
            zone(name)
        assert caught.value.nearest == nearest


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Europe/Madird", "Zone: 'Europe/Madird' is not an IANA time zone; did you mean 'Europe/Madrid'?"),
        ("europe/madrid", "did you mean 'Europe/Madrid'?"),
        (" Europe/Madrid ", "did you mean 'Europe/Madrid'?"),
        ("utc", "did you mean 'UTC'?"),
        ("Madrid", "did you mean 'Europe/Madrid'?"),
        ("New York", "did you mean 'America/New_York'?"),
        ("Tokio", "did you mean 'Asia/Tokyo'?"),
        ("", "write one like 'Europe/Madrid', or 'UTC'."),
        ("CEST", "is not an IANA time zone"),
        ("UTC+2", "is not an IANA time zone"),
        ("+02:00", "is not an IANA time zone"),
        ("Europe", "is not an IANA time zone"),
        ("Europe/", "is not an IANA time zone"),
        ("localtime", "is not an IANA time zone"),
        ("posixrules", "is not an IANA time zone"),
        ("Factory", "is not an IANA time zone"),
        ("posix/Europe/Madrid", "is not an IANA time zone"),
        ("right/Europe/Madrid", "is not an IANA time zone"),
        ("zone.tab", "is not an IANA time zone"),
        ("/etc/passwd", "is not an IANA time zone"),
        ("/usr/share/zoneinfo/Europe/Madrid", "is not an IANA time zone"),
        ("../x", "is not an IANA time zone"),
        ("Europe/../Europe/Madrid", "is not an IANA time zone"),
        ("Europe/Madrid\x00", "is not an IANA time zone"),
        ("Europe/Madrid" * 1000, "a name of 13000 characters is no IANA time zone"),
    ],
)
def test_other_names_are_refused_with_a_sentence(name: str, sentence: str) -> None:
    with pytest.raises(ZoneError) as caught:
        zone(name)

    assert sentence in str(caught.value)
    assert len(str(caught.value)) < 200


@examples(50)
@given(st.text(max_size=80))
def test_any_text_is_a_zone_or_an_error(name: str) -> None:
    if name in zone_names():
        assert zone(name).key == name
    else:
        with pytest.raises(ZoneError, match=r"^Zone: "):
            zone(name)


@pytest.mark.parametrize(
    ("local", "tz", "instant"),
    [
        ("2026-01-01T12:34:56", "UTC", "2026-01-01T12:34:56"),
        ("2026-07-01T12:00:07", "Europe/Madrid", "2026-07-01T10:00:07"),
        # If the clock shows a local time twice, the result is the earlier of the two instants.
        ("2026-11-01T01:30:15", "America/New_York", "2026-11-01T05:30:15"),
        ("2026-04-05T01:45", "Australia/Lord_Howe", "2026-04-04T14:45"),
        # If the clock skips a local time, the result is the end of the gap.
        ("2026-03-08T02:00", "America/New_York", "2026-03-08T07:00"),
        ("2026-03-08T02:30:15", "America/New_York", "2026-03-08T07:00"),
        ("2026-03-08T02:59:59.999999", "America/New_York", "2026-03-08T07:00"),
        ("2026-03-08T03:00", "America/New_York", "2026-03-08T07:00"),
        ("2026-03-08T01:59:59", "America/New_York", "2026-03-08T06:59:59"),
        ("2011-12-30T09:30", "Pacific/Apia", "2011-12-30T10:00"),
        ("2018-11-04T00:00", "America/Sao_Paulo", "2018-11-04T03:00"),
    ],
)
def test_local_times_mean_the_same_instants_as_in_fixed_schedules(local: str, tz: str, instant: str) -> None:
    found = resolve_wall(datetime.fromisoformat(local), tz)

    assert found == utc(instant)
    assert found.tzinfo is UTC


def test_fold_of_the_argument_does_not_matter() -> None:
    local = datetime(2026, 11, 1, 1, 30, fold=1)

    assert resolve_wall(local, "America/New_York") == utc("2026-11-01T05:30")


@pytest.mark.parametrize(
    ("local", "tz", "stored", "instant"),
    [
        # The clock shows 02:30 at 00:30 and at 01:30 in UTC.
        ("2026-10-25T02:30", "Europe/Berlin", "2026-10-25T01:30", "2026-10-25T01:30"),
        ("2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:30", "2026-10-25T00:30"),
        ("2026-10-25T02:30", "Europe/Berlin", "2026-10-25T01:30:00.250", "2026-10-25T01:30:00.250"),
        ("2026-10-25T02:31", "Europe/Berlin", "2026-10-25T01:30", "2026-10-25T00:31"),
        # Another zone: the stored instant has another time there, or the same one.
        ("2026-10-25T02:30", "UTC", "2026-10-25T01:30", "2026-10-25T02:30"),
        ("2026-10-25T02:30", "Europe/Paris", "2026-10-25T01:30", "2026-10-25T01:30"),
        # No clock shows a skipped time, so it is never the stored one.
        ("2026-03-29T02:30", "Europe/Berlin", "2026-03-29T00:30", "2026-03-29T01:00"),
        ("2026-03-29T02:30", "Europe/Berlin", "2026-03-29T01:30", "2026-03-29T01:00"),
    ],
)
def test_a_time_that_was_not_touched_stays_at_its_instant(local: str, tz: str, stored: str, instant: str) -> None:
    assert resolve_again(datetime.fromisoformat(local), tz, utc(stored)) == utc(instant)
    assert resolve_again(datetime.fromisoformat(local), tz, None) == resolve_wall(datetime.fromisoformat(local), tz)


def test_a_local_time_with_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="must have no time zone"):
        resolve_wall(utc("2026-01-01"), "UTC")


def test_a_local_time_at_the_end_of_years_is_refused() -> None:
    with pytest.raises(ValueError, match="outside the years 1-9999"):
        resolve_wall(datetime.max, "America/New_York")
    with pytest.raises(ValueError, match="outside the years 1-9999"):
        resolve_wall(datetime.min, "Asia/Tokyo")


def test_clock_changes_of_a_year() -> None:
    hour = timedelta(hours=1)

    assert list(clock_changes(ZoneInfo("America/New_York"), utc("2026-01-01"), utc("2027-01-01"))) == [
        (utc("2026-03-08T07:00"), hour),
        (utc("2026-11-01T06:00"), hour),
    ]
    assert list(clock_changes(ZoneInfo("Australia/Lord_Howe"), utc("2026-04-01"), utc("2026-05-01"))) == [
        (utc("2026-04-04T15:00"), hour / 2),
    ]
    assert list(clock_changes(ZoneInfo("Pacific/Apia"), utc("2011-12-30T09:59"), utc("2011-12-30T10:00"))) == [
        (utc("2011-12-30T10:00"), 24 * hour),
    ]
    assert not list(clock_changes(ZoneInfo("UTC"), utc("2000-01-01"), utc("2027-01-01")))
