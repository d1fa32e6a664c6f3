"""Environment -> Django settings. Every name is described in docs/configuration.md.

Values are only read here; `scheduling.conf` holds the bounds of the CRON_ ones and
`manage.py check` says which is wrong and what to do.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()
environ.Env.read_env(env.str("ENV_FILE", str(Path.cwd() / ".env")))

DATA_DIR = Path(env.str("DATA_DIR", str(Path.cwd() / "var")))

DEBUG = env.bool("DEBUG", False)
SECRET_KEY = env.str("SECRET_KEY", "")
if not SECRET_KEY:
    _key_file = DATA_DIR / "secret.key"  # `manage.py up` makes one on its first start
    if _key_file.exists():
        SECRET_KEY = _key_file.read_text().strip()
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

# Behind TLS (HTTPS=true) cookies are bound to it; embedded use on a laptop has none.
_https = env.bool("HTTPS", False)
SECURE_SSL_REDIRECT = _https
SESSION_COOKIE_SECURE = _https
CSRF_COOKIE_SECURE = _https
SECURE_HSTS_SECONDS = env.int("HSTS_SECONDS", 31536000 if _https else 0)
SECURE_HSTS_INCLUDE_SUBDOMAINS = _https
SECURE_HSTS_PRELOAD = _https
if env.bool("BEHIND_PROXY", False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
X_FRAME_OPTIONS = "DENY"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "scheduling",
    "reports",
    *(["cronsite.demo"] if env.bool("CRON_DEMO", False) else []),
    *env.list("EXTRA_APPS", default=[]),
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "cronsite.urls"
WSGI_APPLICATION = "cronsite.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
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


def database(url: str) -> dict[str, Any]:
    """One DATABASES entry from a database URL, with what each engine needs to be safe here.

    SQLite: WAL lets readers and the one writer work side by side; IMMEDIATE takes the write
    lock at BEGIN, so a read-then-write never fails with "database is locked" halfway.
    MySQL and MariaDB: READ COMMITTED, on which SKIP LOCKED claims do not lock gaps.
    """
    try:
        config: dict[str, Any] = dict(environ.Env.db_url_config(url))
    except Exception as error:
        raise ImproperlyConfigured(
            "DATABASE_URL cannot be read. Write it as mysql://user:password@host:3306/name, "
            "postgres://..., or sqlite:///path; a # or ? in the password must be percent-encoded."
        ) from error
    options = config.setdefault("OPTIONS", {})
    engine = str(config["ENGINE"])
    if engine.endswith("sqlite3"):
        options.setdefault("timeout", 20)
        options.setdefault("transaction_mode", "IMMEDIATE")
        options.setdefault("init_command", "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;")
    elif engine.endswith("mysql"):
        options.setdefault("charset", "utf8mb4")
        options.setdefault("isolation_level", "read committed")
        options.setdefault("connect_timeout", 10)
    elif engine.endswith("postgresql"):
        options.setdefault("connect_timeout", 10)
    config.setdefault("CONN_HEALTH_CHECKS", True)
    config["CONN_MAX_AGE"] = env.int("CONN_MAX_AGE", 60)
    return config


DATABASES = {"default": database(env.str("DATABASE_URL", f"sqlite:///{DATA_DIR / 'db.sqlite3'}"))}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

LANGUAGE_CODE = env.str("LANGUAGE_CODE", "en-us")
USE_I18N = True
USE_TZ = True
TIME_ZONE = env.str("TIME_ZONE", "UTC")

STATIC_URL = "static/"
# An image names STATIC_ROOT and runs `collectstatic`; without it (a laptop) files are
# served from the apps themselves.
STATIC_ROOT = env.str("STATIC_ROOT", "") or None
WHITENOISE_USE_FINDERS = STATIC_ROOT is None
MEDIA_ROOT = Path(env.str("MEDIA_ROOT", str(DATA_DIR / "media")))

EMAIL_CONFIG = env.email_url("EMAIL_URL", default="consolemail://")
vars().update(EMAIL_CONFIG)
DEFAULT_FROM_EMAIL = env.str("DEFAULT_FROM_EMAIL", "cron@localhost")

# --- scheduling ---------------------------------------------------------------------------
# Only what the environment says is passed on; scheduling.conf knows defaults and bounds.
BROKER_URL = env.str("BROKER_URL", "database://")
LOG_FORMAT = env.str("LOG_FORMAT", "text")
LOG_LEVEL = env.str("LOG_LEVEL", "INFO")
_names = (
    "CRON_TIMEZONE",
    "CRON_MAX_RETRIES",
    "CRON_RETRY_DELAY_MS",
    "CRON_RETRY_DELAY_MULTIPLIER",
    "CRON_RETRY_MAX_DELAY_MS",
    "CRON_RETRY_JITTER",
    "CRON_CATCH_UP_SECONDS",
    "CRON_LEASE_SECONDS",
    "CRON_GRACE_SECONDS",
    "CRON_TIME_LIMIT_SECONDS",
    "CRON_OUTPUT_MAX_BYTES",
    "CRON_COMMANDS",
    "CRON_RETENTION_DAYS",
)
for _name in _names:
    if _name in env.ENVIRON:
        vars()[_name] = env.str(_name)

LOGGING_CONFIG = None  # scheduling.logs configures logging once, in every process
