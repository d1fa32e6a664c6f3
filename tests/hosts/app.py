"""What a host's team writes: an app with two workers, and its own logging."""

from __future__ import annotations

import re

from tests.hosts.project import Project
from tests.support import ROOT

ERROR = "the bank does not answer"

CHARGE = """

from pathlib import Path

from django.conf import settings
from pydantic import BaseModel


class Nothing(BaseModel):
    pass


@worker("charge_cards", params=Nothing, retry=RetryPolicy(max_retries=1, delay_ms=1_000))
def charge_cards(params: Nothing, run: Run) -> None:
    if not (Path(settings.BASE_DIR) / "mended").exists():
        raise RuntimeError("the bank does not answer")
    print("all cards are charged")
"""

COLLECTOR = '''
import json
import logging
import traceback

from django.conf import settings


class Collector(logging.Handler):
    """Stands for an error collector such as Sentry's: it gets each record of level ERROR."""

    def emit(self, record):
        trace = "".join(traceback.format_exception(*record.exc_info)) if record.exc_info else ""
        found = {"logger": record.name, "message": record.getMessage(), "traceback": trace}
        with open(settings.BASE_DIR / "errors.jsonl", "a") as file:
            file.write(json.dumps(found) + "\\n")
'''

SETTINGS = """
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"collector": {"class": "jobs.collector.Collector", "level": "ERROR"}},
    "root": {"handlers": ["collector"], "level": "INFO"},
}
INSTALLED_APPS = [*INSTALLED_APPS, "scheduling", "reports", "jobs"]
MEDIA_ROOT = BASE_DIR / "media"
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1"]
"""


def readme_worker() -> str:
    """The README's first worker, as it stands there."""
    found = re.search(r"```python\n(# your_app/workers\.py.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def readme_sqlite() -> str:
    """The README's options for SQLite, as they stand there."""
    found = re.search(r'```python\n("OPTIONS": .*?),\n```', (ROOT / "README.md").read_text(), re.DOTALL)
    return f'DATABASES["default"].update({{{found[1]}}})' if found else ""


def add_app(project: Project) -> None:
    """Write the app and its settings."""
    project.write("jobs/workers.py", readme_worker() + CHARGE)
    project.write("jobs/collector.py", COLLECTOR)
    project.settings(SETTINGS)
