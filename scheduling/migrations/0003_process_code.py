"""The times of a process's code; and the words "pause" and "resume" in the help texts of a schedule."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduling", "0002_schedule_pauses")]

    operations = [
        migrations.AddField(
            model_name="process",
            name="code_at",
            field=models.DateTimeField(blank=True, null=True, verbose_name="code loaded"),
        ),
        migrations.AddField(
            model_name="process",
            name="code_changed_at",
            field=models.DateTimeField(blank=True, null=True, verbose_name="code changed"),
        ),
        migrations.AlterModelOptions(
            name="scheduler",
            options={
                "ordering": ["id"],
                "permissions": [
                    ("run_scheduler", "Can run a schedule now"),
                    ("pause_scheduler", "Can pause and resume a schedule"),
                ],
                "verbose_name": "schedule",
                "verbose_name_plural": "schedules",
            },
        ),
        migrations.AlterField(
            model_name="scheduler",
            name="date_time",
            field=models.DateTimeField(
                blank=True,
                help_text="Runs once at this instant, and is then paused.",
                null=True,
                verbose_name="date and time",
            ),
        ),
        migrations.AlterField(
            model_name="scheduler",
            name="pause_reason",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Shown beside the paused schedule. Removed when it is resumed.",
                max_length=500,
                verbose_name="reason for the pause",
            ),
        ),
    ]
