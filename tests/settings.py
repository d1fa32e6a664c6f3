"""The site's settings for tests: a database of their own, nothing from the environment."""

import os
import tempfile

os.environ["SECRET_KEY"] = "tests"
os.environ.setdefault("DATA_DIR", tempfile.mkdtemp(prefix="cron-tests-"))
os.environ["ENV_FILE"] = "/nonexistent"

from cronsite.settings import *  # noqa: F403
from cronsite.settings import DATA_DIR, INSTALLED_APPS, database

DATABASES = {"default": database(os.environ.get("TEST_DATABASE_URL", f"sqlite:///{DATA_DIR / 'db.sqlite3'}"))}
if "sqlite3" in DATABASES["default"]["ENGINE"]:
    # A file, not memory: the tests' children and threads are other connections.
    DATABASES["default"]["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
elif "mysql" in DATABASES["default"]["ENGINE"]:
    # Not the server's own default, which may be latin1.
    DATABASES["default"]["TEST"] = {"CHARSET": "utf8mb4"}
DATABASES["default"]["CONN_MAX_AGE"] = 0

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
INSTALLED_APPS = [*INSTALLED_APPS, "tests.handlers"]
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
