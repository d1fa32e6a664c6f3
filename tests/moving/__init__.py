"""Tests of `import_crontab` and `import_celery_beat`."""
