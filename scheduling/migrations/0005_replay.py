"""Replays of failed executions, and the parts of what they were chosen from."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('scheduling', '0004_pause_reason'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Replay',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.UUIDField(unique=True)),
                ('requested_by', models.CharField(max_length=150, verbose_name='requested by')),
                ('created_at', models.DateTimeField(verbose_name='started')),
                ('selection', models.CharField(max_length=500, verbose_name='selection')),
                ('minutes', models.PositiveIntegerField(default=0, verbose_name='spread over minutes')),
                ('state', models.CharField(choices=[('collecting', 'collecting'), ('waiting', 'canary runs'), ('released', 'sending'), ('stopped', 'stopped'), ('done', 'done')], db_index=True, max_length=10, verbose_name='state')),
                ('reason', models.TextField(blank=True, default='', verbose_name='reason')),
                ('finished_at', models.DateTimeField(blank=True, null=True, verbose_name='finished')),
                ('canary', models.PositiveBigIntegerField(null=True, verbose_name='canary')),
                ('canary_attempt', models.PositiveIntegerField(default=0)),
                ('total', models.PositiveIntegerField(default=0, verbose_name='executions')),
                ('position', models.PositiveIntegerField(default=0)),
                ('sent', models.PositiveIntegerField(default=0, verbose_name='sent')),
                ('skipped', models.PositiveIntegerField(default=0, verbose_name='skipped')),
                ('next_at', models.DateTimeField(blank=True, null=True)),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'replay',
                'verbose_name_plural': 'replays',
                'ordering': ['-id'],
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='ReplayChunk',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('first', models.PositiveIntegerField()),
                ('items', models.JSONField()),
                ('replay', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='chunks', to='scheduling.replay')),
            ],
            options={
                'verbose_name': 'part of a replay',
                'verbose_name_plural': 'parts of replays',
                'constraints': [models.UniqueConstraint(fields=('replay', 'first'), name='scheduling_replay_chunk')],
            },
        ),
    ]
