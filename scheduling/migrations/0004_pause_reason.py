"""Why a schedule is paused."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('scheduling', '0003_dashboard'),
    ]

    operations = [
        migrations.AddField(
            model_name='scheduler',
            name='pause_reason',
            field=models.CharField(blank=True, db_default='', default='', help_text='Shown to whoever asks why it does not run; forgotten when it is switched on.', max_length=500, verbose_name='reason for the pause'),
        ),
    ]
