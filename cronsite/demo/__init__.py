"""Demo workers and schedules for a first start. The settings install this app if CRON_DEMO is 1; `up` sets that."""
