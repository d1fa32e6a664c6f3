#!/bin/sh
# Tells when the failed inbox has more than THRESHOLD failures. docs/operations/monitoring.md has the line for crontab.
#
#   THRESHOLD   by default 10
#   ALERT_URL   gets the message by POST, as {"message": "..."}. Without it, cron mails what is printed.
#
# Exit codes: 0 there are not more, 1 there are more, 2 they cannot be counted, 3 ALERT_URL has refused the message.
# Start it in the folder of manage.py, with the project's Python first in PATH.
set -u
THRESHOLD="${THRESHOLD:-10}"
ALERT_URL="${ALERT_URL:-}"

alert() { # message
    echo "ALERT: $1"
    [ -z "$ALERT_URL" ] && return
    curl --fail --silent --show-error --max-time 20 --output /dev/null \
        --header "Content-Type: application/json" --data "{\"message\": \"$1\"}" "$ALERT_URL" || exit 3
}

failed="$(python manage.py cron status --json | python -c 'import json, sys; print(int(json.load(sys.stdin)["failed"]))')"
if [ -z "$failed" ]; then
    alert "the failed tasks cannot be counted"
    exit 2
fi
if [ "$failed" -gt "$THRESHOLD" ]; then
    alert "$failed failed tasks (threshold: $THRESHOLD)"
    exit 1
fi
