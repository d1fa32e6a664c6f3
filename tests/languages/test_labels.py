"""The labels of the fields that users edit are marked for translation. Django makes other ones from column names."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.utils.functional import Promise

from scheduling.models.edited import EDITED

MODELS = [model for app in ("scheduling", "cron_reports") for model in apps.get_app_config(app).get_models()]


@pytest.mark.parametrize("name", EDITED)
def test_each_label_is_marked(name: str) -> None:
    (model,) = [model for model in MODELS if model._meta.model_name == name]
    fields = [field for field in model._meta.fields if field.editable and not field.primary_key]
    assert fields
    assert [field.name for field in fields if not isinstance(field.verbose_name, Promise)] == []
