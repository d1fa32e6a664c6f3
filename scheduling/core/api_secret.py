"""The form of an API token's secret: `cron_<8 characters>_<43 characters>`. The first part is shown in lists."""

from __future__ import annotations

import hashlib
import re

LONGEST = 200
"""A longer text is not looked at, in characters."""

PREFIX_SIGNS = "abcdefghijkmnpqrstuvwxyz23456789"
"""The prefix has no signs that users confuse, such as l and 1."""
PREFIX_LENGTH = 8
RANDOM_BYTES = 32
"""They give 43 characters of base64url."""

_SECRET = re.compile(r"cron_[a-z0-9]{8}_[A-Za-z0-9_-]{43}")


def prefix_of(secret: str) -> str:
    """The part of a secret that pages may show, such as `cron_k3v9x0qa`."""
    return secret[: len("cron_") + PREFIX_LENGTH]


def is_secret(text: object) -> bool:
    """Whether the text has the form of a secret."""
    return isinstance(text, str) and len(text) <= LONGEST and _SECRET.fullmatch(text) is not None


def digest_of(secret: str) -> str:
    """The SHA-256 of the secret, as 64 hexadecimal digits. The secret has 256 random bits, so it needs no salt."""
    return hashlib.sha256(secret.encode()).hexdigest()


def only_reads(permission: str) -> bool:
    """Whether a permission `app_label.codename` changes nothing: its codename begins with `view_`."""
    return permission.partition(".")[2].startswith("view_")
