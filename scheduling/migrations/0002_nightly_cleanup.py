"""The 3 AM cleanup: an ordinary schedule that operators can see, move and switch off."""

from django.db import migrations

WORKER = {
    "title": "Management command",
    "description": "Runs one of the management commands that CRON_COMMANDS allows.",
}
DESCRIPTION = "Nightly cleanup of old executions"


def create(apps, schema_editor):
    """Make both rows, once: who deletes the schedule later does not get it back."""
    alias = schema_editor.connection.alias
    worker, _ = apps.get_model("scheduling", "Worker").objects.using(alias).get_or_create(
        name="run_command", defaults=WORKER
    )
    # A historical model plans nothing. The row counts as changed by plain SQL (`planned_*` are
    # NULL, so `plan_stale` is 1), and the first sweep of a producer sets its next run.
    apps.get_model("scheduling", "Scheduler").objects.using(alias).get_or_create(
        worker=worker,
        description=DESCRIPTION,
        defaults={"schedule": "0 3 * * *", "params": {"command": "cleanup_executions"}},
    )


class Migration(migrations.Migration):

    dependencies = [
        ("scheduling", "0001_initial"),
    ]

    operations = [
        migrations.RunPython(create, migrations.RunPython.noop),
    ]
