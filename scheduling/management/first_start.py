"""What only the first start on a machine has to do: a folder, a secret key, somebody who may sign in."""

from __future__ import annotations

import os
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError
from django.db import models

ADMIN = "admin"
# Without characters that people mistake for each other; a password of four groups has 94 bits.
_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"


def ensure_data_dir() -> Path:
    """The folder of this installation's own files, made if need be, readable by its owner alone.

    Raises:
        CommandError: when it cannot be made.
    """
    base = getattr(settings, "BASE_DIR", None) or Path.cwd()
    folder = Path(getattr(settings, "DATA_DIR", None) or Path(base) / "var")
    try:
        if not folder.is_dir():
            folder.mkdir(mode=0o700, parents=True)
    except OSError as error:
        raise CommandError(
            f"The data folder {folder} cannot be made ({error.strerror}). Set DATA_DIR to a folder you may write to."
        ) from error
    return folder


def ensure_secret_key() -> Path | None:
    """Make and set a SECRET_KEY if the settings have none; return the file that holds it, if it was made now.

    Raises:
        CommandError: when the file cannot be written.
    """
    try:
        if settings.SECRET_KEY:
            return None
    except ImproperlyConfigured:  # how Django answers for an empty one
        pass
    path = ensure_data_dir() / "secret.key"
    made = False
    try:
        key = path.read_text().strip() if path.exists() else ""
        if not key:
            key, made = secrets.token_urlsafe(48), True
            _write_private(path, key)
    except OSError as error:
        raise CommandError(
            f"The secret key cannot be kept in {path} ({error.strerror}). Make it writable, or set SECRET_KEY."
        ) from error
    # For this process and for those it starts: their settings may read the file, or only the environment.
    settings.SECRET_KEY = key
    os.environ["SECRET_KEY"] = key
    return path if made else None


def _write_private(path: Path, text: str) -> None:
    """All of it or nothing, and never for an instant readable by others."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)  # made with mode 0600
    try:
        with os.fdopen(handle, "w") as file:
            file.write(f"{text}\n")
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


@dataclass(frozen=True)
class Account:
    """Who may sign in.

    Args:
        name: what to type as user name; empty when there is nobody.
        password: of an account that was made just now; it is kept nowhere.
    """

    name: str
    password: str = ""


def ensure_admin() -> Account:
    """The first superuser; made, with a random password, when there is none."""
    model = get_user_model()
    manager = model._default_manager
    if not issubclass(model, AbstractUser):
        return Account("")  # a user model of the project's own: we cannot know what it needs
    first = manager.filter(is_superuser=True, is_active=True).order_by("pk").first()
    if first is not None:
        return Account(first.get_username())
    field = model._meta.get_field(model.USERNAME_FIELD)
    name = f"{ADMIN}@localhost.localdomain" if isinstance(field, models.EmailField) else ADMIN
    needs = set(model.REQUIRED_FIELDS) - {"email"}
    if needs or manager.filter(**{model.USERNAME_FIELD: name}).exists():
        return Account("")
    password = "-".join("".join(secrets.choice(_ALPHABET) for _ in range(5)) for _ in range(4))
    user = model(**{model.USERNAME_FIELD: name}, is_superuser=True, is_staff=True)
    user.set_password(password)
    user.save()
    return Account(name, password)
