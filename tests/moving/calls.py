"""Runs the imports in the process of a test."""

from __future__ import annotations

import io

from django.core.management import call_command

from tests.management.cron.calls import Ended


def imported(command: str, *arguments: object) -> Ended:
    """Run `import_crontab` or `import_celery_beat`."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    try:
        call_command(command, *map(str, arguments), stdout=out, stderr=err)
    except SystemExit as end:
        code = int(end.code or 0)
    return Ended(code, out.getvalue(), err.getvalue())
