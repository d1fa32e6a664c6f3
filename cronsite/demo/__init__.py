"""Something to watch on a first start: installed when CRON_DEMO is on, as `manage.py up` sets it."""
