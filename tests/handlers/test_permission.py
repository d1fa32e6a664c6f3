"""The system check of the permissions that handlers ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from django.core.checks import run_checks

from scheduling.handlers import find, register, worker
from scheduling.handlers.permission import problems

Guard = Callable[[str], None]


@pytest.fixture
def guard() -> Iterator[Guard]:
    free = find("worker", "tests.noop")
    yield lambda permission: register(replace(free, permission=permission))
    register(free)


@pytest.mark.parametrize("permission", ["", "auth.view_group", "scheduling.run_scheduler", "cron_reports.view_report"])
def test_a_permission_of_a_model_is_fine(guard: Guard, permission: str) -> None:
    guard(permission)
    assert list(problems()) == []


@pytest.mark.parametrize("permission", ["payroll", "shop.", ".run", "shop.run.now", "shop run", "shop.run now"])
def test_a_wrong_shape_is_an_error(guard: Guard, permission: str) -> None:
    guard(permission)
    found = [message for message in run_checks() if message.id == "scheduling.E005"]
    assert [message.msg for message in found] == [
        f"The permission {permission!r} of worker 'tests.noop' must have the form 'app_label.codename'."
    ]


def test_an_unknown_permission_is_a_warning(guard: Guard) -> None:
    guard("shop.run_payroll")
    (found,) = [message for message in run_checks() if message.id == "scheduling.W003"]
    assert "'shop.run_payroll' of worker 'tests.noop' is not a permission of an installed model" in found.msg
    assert "only superusers" in str(found.hint)


def test_the_decorator_takes_the_permission() -> None:
    assert find("worker", "tests.noop").permission == ""
    with pytest.raises(TypeError):
        worker("x", permissions="a.b")  # type: ignore[call-arg]
