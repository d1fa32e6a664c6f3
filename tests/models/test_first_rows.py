"""The rows that the first migration makes have names in the language of the site."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.db import connection

from scheduling.models import AlertRule

INITIAL = import_module("scheduling.migrations.0001_initial")


@pytest.mark.parametrize(("language", "name"), [("en", "No producer"), ("de", "Kein Producer")])
def test_a_name_is_in_the_language_of_the_site(settings: Any, language: str, name: str) -> None:
    settings.LANGUAGE_CODE = language
    assert INITIAL._said("No producer") == name


@pytest.mark.django_db
def test_the_rules_have_these_names() -> None:
    INITIAL.create_rules(apps, connection.schema_editor())
    found = set(AlertRule.objects.values_list("name", "kind", "severity"))
    assert found == {(name, kind, severity) for kind, (name, severity) in INITIAL.RULES.items()}
