"""Plain SQL writes hostile values into the row of the deployment. A process then works or holds, and never stops."""

from __future__ import annotations

import pytest
from django.db import models
from django.test import Client
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.broker.database import DatabaseBroker
from scheduling.execution.confirm import confirm
from scheduling.models import Deployment
from scheduling.models.deployment import ONLY
from scheduling.monitoring.findings.areas import problems
from scheduling.monitoring.findings.present import Present
from scheduling.processes.guard import Guard, guard
from scheduling.processes.server_clock import ServerClock
from scheduling.processes.upkeep import Upkeep
from tests.hostile import fuzz
from tests.hostile.values import columns, hostile_value, lenient, write

pytestmark = pytest.mark.django_db(transaction=True)

FIELDS = columns(Deployment, keys=False)


@pytest.mark.long
@pytest.mark.parametrize("field", FIELDS, ids=[field.column for field in FIELDS])
def test_a_hostile_value_is_a_hold_at_most_and_can_be_confirmed(field: models.Field, admin_client: Client) -> None:
    pick, page = fuzz.generator(f"deployment.{field.column}"), reverse("admin:scheduling_deployment_changelist")
    upkeep = Upkeep(ServerClock())
    for _number in range(10):
        guard.forget()
        assert guard.look() is None
        with lenient():
            write(Deployment, field, ONLY, hostile_value(pick, field))
        upkeep.turn()
        Guard().beat(DatabaseBroker(), clock.now(), lambda: upkeep.deployment)
        hold = guard.look()
        assert admin_client.get(page).status_code == 200
        problems(Present(clock.now()))
        if hold is not None:
            assert confirm(clock.now(), "anna", run_waiting=True) is not None
