"""After a transactional test, the database holds the same rows as after Django's own `flush`."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command

from tests.admin.conftest import logged_in
from tests.admin.rows import one_of_each
from tests.admin.world import world
from tests.factories import UserFactory
from tests.quick_flush import Flush, tables

pytestmark = pytest.mark.django_db(transaction=True)


def counts() -> dict[str, int]:
    return {label: len(rows) for label, rows in world().items()}


def test_it_leaves_what_djangos_flush_leaves(settings: Any) -> None:
    call_command("flush", verbosity=0, interactive=False, reset_sequences=False)
    expected, flush = counts(), Flush()
    one_of_each()
    logged_in(UserFactory(superuser=True))
    flush()
    assert counts() == expected
    assert not UserFactory._meta.model.objects.exists()


def test_rows_that_stay_are_made_anew_if_a_test_has_changed_them() -> None:
    flush = Flush()
    flush()  # no test before this one may have done so, and the rows of the first migration do not stay
    before = counts()
    Permission.objects.filter(codename="view_scheduler").delete()
    ContentType.objects.create(app_label="gone", model="gone")
    flush()
    assert counts() == before
    assert Permission.objects.filter(codename="view_scheduler").exists()


def test_relations_between_two_models_are_emptied_too() -> None:
    assert {"auth_user_groups", "django_session"} <= {name.strip('"`') for name in tables()}
