"""Whether this site sends its e-mails at all. The ready-made site prints them until EMAIL_URL is set."""

from __future__ import annotations

from typing import Any

from django.conf import settings

KEEPS = frozenset(
    f"django.core.mail.backends.{name}.EmailBackend" for name in ("console", "dummy", "filebased", "locmem")
)
"""The mail backends of Django that print, drop or keep e-mails. They are for the work on a project, and for tests."""


def sends_mail() -> bool:
    """Whether the mail backend of this process sends e-mails. A backend of the project counts as one that does."""
    mailers: Any = getattr(settings, "MAILERS", None)  # Django 6.1 has it instead of EMAIL_BACKEND
    own = mailers.get("default") if isinstance(mailers, dict) else None
    path = own.get("BACKEND") if isinstance(own, dict) else settings.EMAIL_BACKEND
    return path not in KEEPS
