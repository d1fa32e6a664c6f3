"""In whose name a command acts."""

from __future__ import annotations

import pytest

from scheduling.management.cron import whose_name
from scheduling.models import Scheduler
from tests.factories import SchedulerFactory, UserFactory
from tests.management.cron.calls import cron

pytestmark = pytest.mark.django_db


def test_a_change_needs_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "ann")

    def paused_by(*options: str) -> str:
        row: Scheduler = SchedulerFactory(rare=True)
        ended = cron("pause", row.pk, *options)
        row.refresh_from_db()
        return row.paused_by if ended.code == 0 else f"refused: {ended.code}"

    assert paused_by() == "refused: 4"
    UserFactory(username="boss", superuser=True)
    assert paused_by() == "boss"  # the only active superuser
    UserFactory(username="chief", superuser=True)
    assert paused_by() == "refused: 4"
    ann = UserFactory(username="ann", permissions=["scheduling.view_scheduler", "scheduling.pause_scheduler"])
    assert paused_by() == "ann"  # the name of the login
    assert paused_by("--as", "chief") == "chief"
    monkeypatch.setenv(whose_name.VARIABLE, "boss")
    assert paused_by() == "boss"
    assert paused_by("--as", "Ann") == "refused: 3"
    ann.is_active = False
    ann.save()
    assert paused_by("--as", "ann") == "refused: 4"
    assert "“ann” is inactive" in cron("list", "--as", "ann").err
