"""`python -m cronsite`, `cronsite` and `manage.py` are the same command."""

import os
import sys
from contextlib import suppress
from pathlib import Path

SITE_MODULES = frozenset({"csp", "environ", "whitenoise"})
"""Packages that this site's settings import. `pip install 'cronsite[site]'` installs them."""


def main() -> int:
    """Run Django's command line with this site's settings."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cronsite.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        if sys.argv[1:2] == ["migrate"]:
            _make_data_dir()
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.stderr.write(f"{_explain(str(error))}\n")
        return 1
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in SITE_MODULES:
            raise
        sys.stderr.write(f"This site needs {module}, which is not installed: pip install 'cronsite[site]'.\n")
        return 1
    return 0


def _make_data_dir() -> None:
    """Make the folder of the SQLite database, which `migrate` makes next. Only its owner may read it."""
    from django.conf import settings

    if folder := getattr(settings, "DATA_DIR", None):
        with suppress(OSError):  # the check E010 names the folder
            Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)


def _explain(text: str) -> str:
    """Return a text that says how to fix the error, or the error's own text if no fix is known."""
    if "MySQLdb" in text:
        return "DATABASE_URL names MySQL or MariaDB, but its driver is missing: pip install 'cronsite[site,mysql]'."
    if "psycopg" in text:
        return "DATABASE_URL names PostgreSQL, but its driver is missing: pip install 'cronsite[site,postgres]'."
    if "SECRET_KEY" in text:
        return "SECRET_KEY is empty. Set it in the environment, or run `up`, which makes one."
    return text


if __name__ == "__main__":
    sys.exit(main())
