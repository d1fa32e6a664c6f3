"""What operators do, the same through each door: the admin, the HTTP API and the command `cron`."""
