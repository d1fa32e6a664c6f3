"""Moving here from another program: `import_crontab` and `import_celery_beat`."""
