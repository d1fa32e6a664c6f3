"""Each open alert has its turn, even if no channel wants thousands of others."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduling.alerts import notices
from scheduling.alerts.untold import UntoldAlerts, untold_at
from scheduling.models import Alert
from tests.alerts.support import alert, channel
from tests.support import NOON

pytestmark = pytest.mark.django_db


def numbers(untold: UntoldAlerts) -> list[int]:
    keys = list(Alert.objects.order_by("pk").values_list("pk", flat=True))
    return [keys.index(row[0]) for row in untold.rows(NOON)]


def test_each_look_goes_on_where_the_one_before_has_stopped() -> None:
    Alert.objects.bulk_create(alert(number) for number in range(8))
    untold = UntoldAlerts(untold_at, most=3)
    assert [numbers(untold) for _ in range(4)] == [
        [0, 1, 2, 3, 4, 5],
        [0, 1, 2, 6, 7],
        [0, 1, 2],
        [0, 1, 2, 3, 4, 5],
    ]


def test_a_look_at_few_alerts_is_one_query(django_assert_num_queries: pytest.FixtureRequest) -> None:
    Alert.objects.bulk_create(alert(number) for number in range(2))
    untold = UntoldAlerts(untold_at, most=3)
    with django_assert_num_queries(3):  # type: ignore[operator]  # the query, and its savepoint
        untold.rows(NOON)


def test_told_ended_and_muted_alerts_are_not_looked_at() -> None:
    later = NOON + timedelta(hours=1)
    Alert.objects.bulk_create(
        [alert(0, told_at=NOON), alert(1, ended_at=NOON), alert(2, muted_until=later), alert(3), alert(4)]
    )
    assert numbers(UntoldAlerts(untold_at, most=1)) == [3, 4]


def test_a_channel_is_told_of_an_alert_that_thousands_of_unwanted_ones_precede(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "_untold", UntoldAlerts(untold_at, most=3))
    channel("json://127.0.0.1/", least_severity="critical", tells_by_default=True)
    Alert.objects.bulk_create([*(alert(number) for number in range(9)), alert(9, severity="critical")])
    for _ in range(3):
        notices.tell_starts(NOON)
    assert list(Alert.objects.exclude(told_at=None).values_list("key", flat=True)) == ["k9"]
