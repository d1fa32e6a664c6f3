"""A value that Python cannot use breaks no page: the page then names the value and how to mend it."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.admin.common.unusable import CONFLICT
from scheduling.models import Process
from tests.admin.conftest import logged_in
from tests.factories import ProcessFactory, UserFactory
from tests.hostile.values import lenient, write

LIST = reverse("admin:scheduling_process_changelist")

VALUES = ["2020-13-45 00:00:00", "0000-00-00 00:00:00", "infinity"]


@pytest.fixture
def spoiled(transactional_db: None) -> Process:
    """A process whose last heartbeat is no instant. Each database accepts another one of VALUES."""
    row = ProcessFactory()
    field = Process._meta.get_field("heartbeat_at")
    with lenient():
        assert any(write(Process, field, row.pk, value) for value in VALUES)
    return row


def test_the_page_names_the_value(spoiled: Process, caplog: pytest.LogCaptureFixture) -> None:
    response = logged_in(UserFactory(superuser=True)).get(LIST)
    assert response.status_code == CONFLICT
    text = response.content.decode()
    assert f"{Process._meta.db_table}.heartbeat_at" in text
    assert f"WHERE id = {spoiled.pk}" in text
    assert any(record.exc_info for record in caplog.records)  # the page's own error is in the log


def test_a_mended_row_is_shown_again(spoiled: Process) -> None:
    Process.objects.filter(pk=spoiled.pk).update(heartbeat_at=clock.now())
    assert logged_in(UserFactory(superuser=True)).get(LIST).status_code == 200


def test_users_without_permission_learn_nothing(spoiled: Process) -> None:
    assert logged_in(UserFactory()).get(LIST).status_code == 403
    assert Client().get(LIST).status_code == 302


def test_values_of_other_tables_are_not_shown(
    spoiled: Process, viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduling.admin.processes.admin.ProcessAdmin.has_view_permission", lambda *_, **__: False)

    def broken(*_arguments: object, **_values: object) -> None:
        raise ValueError("the value is unusable")

    monkeypatch.setattr("scheduling.admin.executions.admin.ExecutionAdmin.get_queryset", broken)
    response = viewer.get(reverse("admin:scheduling_schedulerexecution_changelist"))
    text = response.content.decode()
    assert response.status_code == CONFLICT
    assert "Ask an administrator" in text
    assert "heartbeat_at" not in text


def test_other_errors_are_raised(editor: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_arguments: object, **_values: object) -> None:
        raise ValueError("a defect of the page")

    monkeypatch.setattr("scheduling.admin.processes.admin.ProcessAdmin.get_queryset", broken)
    with pytest.raises(ValueError, match="a defect of the page"):
        editor.get(LIST)
