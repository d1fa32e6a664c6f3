"""Pages refuse or ignore input that no browser would send. They never answer with a server error."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from scheduling.models import Scheduler
from tests.admin.addresses import OWN
from tests.admin.scheduler_form import ADD, form, worker
from tests.factories import SchedulerFactory

LISTS = [
    reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    for model in admin.site._registry
    if model._meta.app_label in OWN
]


@pytest.mark.parametrize("autocomplete", [True, False])
@pytest.mark.parametrize("text", ["abc", "1.5", "9" * 40, "-1", "0", "\x00", "1 OR 1"])
def test_an_invalid_user_key_is_an_error_of_the_form(
    editor: Client, text: str, autocomplete: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not autocomplete:  # the field then becomes a text input for the primary key
        monkeypatch.setattr(admin.site._registry[User], "search_fields", ())
    response = editor.post(ADD, form(worker=worker(), user=text))
    assert response.status_code == 200
    assert response.context["adminform"].form.errors["user"]
    assert not Scheduler.objects.filter(description="Nightly").exists()


def test_a_date_in_the_address_of_the_form_is_ignored(editor: Client) -> None:
    page = editor.get(ADD, {"date_time": "9998-12-31", "description": "kept"})
    assert page.context["adminform"].form.initial == {"description": "kept"}


@pytest.mark.parametrize("path", LISTS)
def test_a_search_of_any_length_is_answered(editor: Client, path: str) -> None:
    for term in ("x" * 60_000, "x y " * 15_000, "1" * 60_000):
        assert editor.get(path, {"q": term}).status_code == 200


def test_a_search_uses_the_first_200_characters(editor: Client) -> None:
    row = SchedulerFactory(description="a" * 200)
    page = editor.get(reverse("admin:scheduling_scheduler_changelist"), {"q": " " + "a" * 60_000})
    assert [shown.pk for shown in page.context["cl"].result_list] == [row.pk]
