"""The identity of the deployment to which this process belongs, by its settings."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from scheduling.conf import get_conf
from scheduling.core.deployment import Identity, fingerprints


def own_identity() -> Identity:
    """The name of the deployment (CRON_DEPLOYMENT), and a fingerprint for each of Django's secret keys.

    A key of SECRET_KEY_FALLBACKS counts as the same deployment. The host of the database is left out, because a
    fail-over changes it. The path of a SQLite file is left out, too: a folder may be moved or renamed.
    """
    keys: list[str] = []
    with suppress(ImproperlyConfigured):  # Django raises this for an empty key; a system check says what to do
        keys = [key.decode() if isinstance(key, bytes) else str(key) for key in _keys()]
    name = "" if connection.vendor == "sqlite" else str(connection.settings_dict["NAME"])
    return _identity(get_conf().deployment, tuple(keys), name)


def _keys() -> Sequence[str | bytes]:
    return [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]


@lru_cache(maxsize=8)
def _identity(name: str, keys: tuple[str, ...], database: str) -> Identity:
    return Identity(name, fingerprints(keys, database))
