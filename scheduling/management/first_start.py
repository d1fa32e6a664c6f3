"""Prepares the first start on a machine. It creates the data folder, the secret key and the first user."""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError
from django.db import models

ADMIN = "admin"
# The characters of passwords. Characters that look alike are left out. A password of 20 characters has 99 bits of
# entropy.
_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"


def ensure_data_dir() -> Path:
    """The folder of this installation's files. If the folder is missing, it is created.

    Only the owner can read the folder, because it gets the mode 0700. An existing folder of another user is left
    unchanged, because that user may share the folder on purpose.

    Raises:
        CommandError: when the folder cannot be created.
    """
    base = getattr(settings, "BASE_DIR", None) or Path.cwd()
    folder = Path(getattr(settings, "DATA_DIR", None) or Path(base) / "var")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        problem = f"The data folder {folder} cannot be made ({error.strerror})."
        raise CommandError(f"{problem} Set DATA_DIR to a folder you may write to.") from error
    facts = folder.stat()
    if facts.st_uid == os.geteuid() and facts.st_mode & 0o077:
        with suppress(OSError):  # some file systems have no modes
            folder.chmod(0o700)
    return folder


def ensure_secret_key() -> Path | None:
    """Make sure that there is a SECRET_KEY. Returns the path of the key file if this call created the file, else None.

    Raises:
        CommandError: when the file cannot be written.
    """
    with suppress(ImproperlyConfigured):  # Django raises this for an empty key
        if settings.SECRET_KEY:
            return None
    path = ensure_data_dir() / "secret.key"
    made = False
    try:
        key = path.read_text().strip() if path.exists() else ""
        if not key:
            key, made = secrets.token_urlsafe(48), True
            _write_private(path, key)
    except OSError as error:
        problem = f"The secret key cannot be kept in {path} ({error.strerror})."
        raise CommandError(f"{problem} Make it writable, or set SECRET_KEY.") from error
    # Child processes get the key from the environment, because some projects' settings do not read the key file.
    settings.SECRET_KEY = key
    os.environ["SECRET_KEY"] = key
    return path if made else None


def _write_private(path: Path, text: str) -> None:
    """Write the file atomically. Other users can never read it."""
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
    """The account to sign in with.

    Args:
        name: the user name; empty when there is no account.
        password: the password if the account was created just now, otherwise empty. Only the password's hash is stored.
    """

    name: str
    password: str = ""


def ensure_admin() -> Account:
    """The account of the first superuser. If there is no superuser, one is created with a random password.

    The account's name is empty if no superuser can be created: the user model has unknown required fields, or the name
    is taken.
    """
    model = get_user_model()
    manager = model._default_manager
    if not issubclass(model, AbstractUser):
        return Account("")  # the required fields of a custom user model are unknown
    first = manager.filter(is_superuser=True, is_active=True).order_by("pk").first()
    if first:
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
