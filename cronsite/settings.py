"""Reads the Django settings from the environment. docs/configuration.md describes every variable.

This module does not check the values of the CRON_ variables. `scheduling.conf` has the bounds. `manage.py check` says
which value is wrong and how to fix it.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import environ
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from scheduling.conf import NAMES
from scheduling.database_options import connection_limits

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()
environ.Env.read_env(env.str("ENV_FILE", str(Path.cwd() / ".env")))

DATA_DIR = Path(env.str("DATA_DIR", str(Path.cwd() / "var")))

DEBUG = env.bool("DEBUG", False)
SECRET_KEY = env.str("SECRET_KEY", "")
if not SECRET_KEY:
    _key_file = DATA_DIR / "secret.key"  # created by the first `manage.py up`
    if _key_file.exists():
        SECRET_KEY = _key_file.read_text().strip()
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

# With HTTPS=true, cookies are sent only over TLS. The default is false, because a laptop serves the site without TLS.
_https = env.bool("HTTPS", False)
SECURE_SSL_REDIRECT = _https
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]  # a load balancer asks the process itself, without TLS
SESSION_COOKIE_SECURE = _https
CSRF_COOKIE_SECURE = _https
SECURE_HSTS_SECONDS = env.int("HSTS_SECONDS", 31536000 if _https else 0)
# These two settings are off by default. They also affect subdomains, and a subdomain may belong to another site.
SECURE_HSTS_INCLUDE_SUBDOMAINS = env.bool("HSTS_INCLUDE_SUBDOMAINS", False)
SECURE_HSTS_PRELOAD = env.bool("HSTS_PRELOAD", False)
if env.bool("BEHIND_PROXY", False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
X_FRAME_OPTIONS = "DENY"
# With this policy, the browser runs no inline script and applies no inline style. If a page fails to escape a text, the
# text still cannot run code.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
        "object-src": [NONE],
    }
}

INSTALLED_APPS = [
    "cronsite.apps.CronAdminConfig",
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
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    # After the one that chooses the language of its sentence, and before all that read the parameters of the address.
    "scheduling.admin.common.many_parameters.ManyParameters",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    # Django's lists of users and groups answer with 400, not 500, if the database cannot use a value of the request.
    "scheduling.admin.common.refused_values.RefusedValues",
]

ROOT_URLCONF = "cronsite.urls"
LOGIN_REDIRECT_URL = "admin:index"
WSGI_APPLICATION = "cronsite.wsgi.application"

# The wheel has the pages inside the app `scheduling`, where Django finds them. There, the folder beside the packages is
# site-packages/templates, which may be another package's.
_installed = (BASE_DIR / "scheduling" / "templates").is_dir()
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [] if _installed else [BASE_DIR / "templates"],
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


ENGINE_OPTIONS: dict[str, dict[str, Any]] = {
    "sqlite3": {
        "timeout": 20,
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    },
    "mysql": {"charset": "utf8mb4", "isolation_level": "read committed"},
}


def database(url: str) -> dict[str, Any]:
    """Return the DATABASES entry for a database URL, with the options that the database engine needs.

    SQLite: with WAL, readers and one writer can work at the same time. With IMMEDIATE, a transaction takes the write
    lock at BEGIN. Otherwise a transaction that reads and then writes can fail with "database is locked".

    MySQL and MariaDB: with READ COMMITTED, claims do not lock the gaps between rows.

    Servers: a host that vanishes is noticed in 15 s.

    Raises:
        ImproperlyConfigured: when the URL cannot be read.
    """
    try:
        config: dict[str, Any] = dict(environ.Env.db_url_config(url))
    except Exception as error:
        raise ImproperlyConfigured(
            "DATABASE_URL cannot be read. Write it as mysql://user:password@host:3306/name, "
            "postgres://..., or sqlite:///path; a # or ? in the password must be percent-encoded."
        ) from error
    engine = config["ENGINE"].rpartition(".")[2]
    options = {**connection_limits(engine), **ENGINE_OPTIONS.get(engine, {}), **config.get("OPTIONS", {})}
    return {
        "CONN_HEALTH_CHECKS": True,
        "DISABLE_SERVER_SIDE_CURSORS": env.bool("DISABLE_SERVER_SIDE_CURSORS", False),
        **config,
        "OPTIONS": options,
        "CONN_MAX_AGE": env.int("CONN_MAX_AGE", 60),
    }


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
# The page that describes the HTTP API uses static files of django-ninja. As an installed app, the package would be
# loaded by each producer and consumer, which costs each of them 5 MB.
STATICFILES_DIRS = [
    ("ninja", Path(folder) / "static" / "ninja")
    for folder in getattr(find_spec("ninja"), "submodule_search_locations", None) or ()
]
# The container image sets STATIC_ROOT and runs `collectstatic`. Without STATIC_ROOT (on a laptop), static files are
# served from the folders of the apps.
STATIC_ROOT = env.str("STATIC_ROOT", "") or None
WHITENOISE_USE_FINDERS = STATIC_ROOT is None
MEDIA_ROOT = Path(env.str("MEDIA_ROOT", str(DATA_DIR / "media")))
FILE_UPLOAD_PERMISSIONS = None  # the umask applies; with Django's 0644, every user of the host could read reports

EMAIL_CONFIG = env.email_url("EMAIL_URL", default="consolemail://")
vars().update(EMAIL_CONFIG)
DEFAULT_FROM_EMAIL = env.str("DEFAULT_FROM_EMAIL", "cron@localhost")

# --- scheduling ---------------------------------------------------------------------------
# Only the CRON_ variables that are set become settings. scheduling.conf has the defaults and bounds.
CRON_SHORT_NAMES = True  # BROKER_URL, LOG_FORMAT and LOG_LEVEL count here
BROKER_URL = env.str("BROKER_URL", "database://")
TASKS = {"default": {"BACKEND": "scheduling.tasks.CronBackend"}}  # without Django 6 or django-tasks, it is not read
CRON_BEAT_FILE = str(DATA_DIR / "beat.json")  # beside the database, so that a restored SQLite file is noticed
CRON_API = "true"
LOG_FORMAT = env.str("LOG_FORMAT", "text")
LOG_LEVEL = env.str("LOG_LEVEL", "INFO")
vars().update({name: env.str(name) for name in NAMES if name in env.ENVIRON})

LOGGING_CONFIG = None  # `scheduling.logs.configure` configures logging instead
