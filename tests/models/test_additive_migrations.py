"""Processes of a release run beside those of the release before it, on the newer tables (docs/operations.md)."""

from __future__ import annotations

import pytest
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.models.fields import NOT_PROVIDED

APPS = ("scheduling", "cron_reports")

ADDITIVE = (migrations.CreateModel, migrations.AddIndex, migrations.AlterModelOptions, migrations.RunPython)


def stops_old_code(operation: Operation) -> bool:
    """Whether code that does not know the operation may fail on the tables after it."""
    if isinstance(operation, migrations.AddField):
        field = operation.field
        return not (field.null or field.many_to_many or field.db_default is not NOT_PROVIDED)
    if isinstance(operation, migrations.SeparateDatabaseAndState):
        return any(stops_old_code(part) for part in operation.database_operations)
    return not isinstance(operation, ADDITIVE)


def test_no_migration_stops_the_processes_of_the_release_before() -> None:
    found = MigrationLoader(None).disk_migrations
    later = {key: one for key, one in found.items() if key[0] in APPS and not one.initial}
    operations = [(*key, operation) for key, one in later.items() for operation in one.operations]
    assert [found for found in operations if stops_old_code(found[-1])] == []
    assert {key[0] for key in found} >= {*APPS}


@pytest.mark.parametrize(
    ("field", "stops"),
    [
        (models.IntegerField(null=True), False),
        (models.IntegerField(db_default=0), False),
        (models.IntegerField(default=0), True),  # only new code fills it
        (models.IntegerField(), True),
    ],
)
def test_a_new_column_may_be_empty_or_has_a_default_in_the_database(field: models.Field, stops: bool) -> None:
    assert stops_old_code(migrations.AddField("process", "new", field)) is stops
    assert stops_old_code(migrations.RemoveField("process", "old"))
    assert stops_old_code(migrations.RenameField("process", "old", "new"))
    assert not stops_old_code(migrations.CreateModel("new", []))
