"""The settings for tests. They use a separate database and read no `.env` file."""

import os

from tests.data_folder import data_folder

os.environ["SECRET_KEY"] = "tests"
os.environ["DATA_DIR"] = str(data_folder())
os.environ["ENV_FILE"] = "/nonexistent"

from cronsite.settings import *  # noqa: F403
from cronsite.settings import DATA_DIR, INSTALLED_APPS, database

DATABASES = {"default": database(os.environ.get("TEST_DATABASE_URL", f"sqlite:///{DATA_DIR / 'db.sqlite3'}"))}
if "sqlite3" in DATABASES["default"]["ENGINE"]:
    # The test database is a file, because the processes and threads of a test open their own connections.
    DATABASES["default"]["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
elif "mysql" in DATABASES["default"]["ENGINE"]:
    # The default character set of a server can be latin1, so the test database sets utf8mb4.
    DATABASES["default"]["TEST"] = {"CHARSET": "utf8mb4"}
DATABASES["default"]["CONN_MAX_AGE"] = 0

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
INSTALLED_APPS = [*INSTALLED_APPS, "tests.apps.sample"]
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"

# A test client makes its own middleware. WhiteNoise must not read the list of all static files for each client.
WHITENOISE_AUTOREFRESH = True
