"""The verbs of `manage.py cron`, one file for each."""
