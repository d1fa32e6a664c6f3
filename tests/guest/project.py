"""A project of others, as `startproject` makes one, in which `scheduling` and `reports` are guests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support import ROOT

SETTINGS = """
from pathlib import Path
BASE_DIR = Path(__file__).resolve().parent.parent
SECRET_KEY = "guest"
DEBUG = True
ALLOWED_HOSTS = ["*"]
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "scheduling",
    "reports",
    "shop",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "config.urls"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [TEMPLATES_OF_THE_CHECKOUT],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
WSGI_APPLICATION = "config.wsgi.application"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": BASE_DIR / "db.sqlite3"}}
LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True
STATIC_URL = "static/"
CRON_MAX_RETRIES = 0
"""

URLS = """
from django.contrib import admin
from django.urls import path
urlpatterns = [path("admin/", admin.site.urls)]
"""

WSGI = """
import os
from django.core.wsgi import get_wsgi_application
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_wsgi_application()
"""

MANAGE = """
import os, sys
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
"""

WORKERS = """
import logging
from pydantic import BaseModel
from scheduling.handlers import Run, worker

class Params(BaseModel):
    region: str = "eu"

@worker("sync", params=Params)
def sync(params: Params, run: Run) -> None:
    run.log.info("syncing %s", params.region)

@worker("broken", params=Params)
def broken(params: Params, run: Run) -> None:
    logging.getLogger("shop").warning("nearly broken")
    raise LookupError(f"no stock in {params.region}")
"""


class GuestProject:
    """A project in a folder of its own.

    Args:
        folder: an empty folder.
        settings: Python lines at the end of settings.py.
    """

    def __init__(self, folder: Path, settings: str = "") -> None:
        self.folder = folder
        self.write("manage.py", MANAGE)
        self.write("config/__init__.py", "")
        # The wheel has these templates inside the app.
        templates = f"TEMPLATES_OF_THE_CHECKOUT = {str(ROOT / 'templates')!r}\n"
        self.write("config/settings.py", f"{templates}{SETTINGS}\n{settings}\n")
        self.write("config/urls.py", URLS)
        self.write("config/wsgi.py", WSGI)
        self.write("shop/__init__.py", "")
        self.write("shop/workers.py", WORKERS)
        kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG", "TMPDIR"}}
        self.environment = {**kept, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"}

    def write(self, name: str, text: str) -> Path:
        """Write a file of the project."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def start(self, *arguments: str, log: str = "log.txt", **environment: str) -> subprocess.Popen[bytes]:
        """Start `manage.py <arguments>`. Its output goes to the file `log`."""
        with (self.folder / log).open("wb") as file:
            return subprocess.Popen(
                [sys.executable, "manage.py", *arguments],
                cwd=self.folder,
                env={**self.environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run `manage.py <arguments>` to its end. Its output and its errors are `stdout`."""
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=self.folder,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )

    def python(self, code: str) -> str:
        """Run Python code with the project's models, and return what it prints. It must not fail."""
        done = self.run("shell", "--verbosity=0", "-c", code)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def migrated(self) -> GuestProject:
        """Make the tables. Returns the project itself."""
        done = self.run("migrate", "--verbosity=0")
        assert done.returncode == 0, done.stdout
        return self


def end(process: subprocess.Popen[bytes]) -> int:
    """Ask a process to end, and return its exit code."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    return process.wait(60)
