"""API tokens: a user makes one for a program, the program shows its secret, and the owner revokes it.

A token allows at most what its owner may do at the time of the request.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import IntegrityError, transaction
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.utils import timezone as clock
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables

from scheduling.core.api_secret import (
    PREFIX_LENGTH,
    PREFIX_SIGNS,
    RANDOM_BYTES,
    digest_of,
    is_secret,
    only_reads,
    prefix_of,
)
from scheduling.core.text import clean, visible_text
from scheduling.logs import get_logger
from scheduling.models import ApiToken
from scheduling.models.api_token import NAME_LENGTH
from scheduling.processes.database import is_away, locking
from scheduling.processes.unusable_values import problem

log = get_logger(__name__)

REVOKE_ANY = "scheduling.revoke_any_token"
"""The permission to see and revoke the tokens of all users. A superuser has it."""

MOST_LIVE = 50
"""A user has at most so many live tokens."""

MOST_PERMISSIONS = 500
USE_NOTED_EVERY = timedelta(minutes=1)

_LIMITED_BY = "_scheduling_token"
"""The attribute of a limited user that has the token."""

_PERMISSION = re.compile(r"[A-Za-z_]\w{0,99}\.\w[\w-]{0,99}")


class TokenRefused(ValueError):
    """A token that cannot be made. The text says why.

    Args:
        field: the name of the argument of `make_token` that is wrong: `user`, `name`, `permissions` or `expires_at`.
    """

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


@sensitive_variables()
def make_token(
    user: Any,
    name: str,
    *,
    read_only: bool = False,
    permissions: Sequence[str] | None = None,
    expires_at: datetime | None = None,
) -> tuple[ApiToken, str]:
    """Make a token. The secret cannot be read again: the database has only its hash.

    Args:
        name: 1 to 80 characters. White space at its ends is removed, and a line break becomes a space.
        read_only: whether the token allows no more than the permissions whose codenames begin with `view_`.
        permissions: the `app_label.codename` of each allowed permission; None allows all permissions of the owner.
        expires_at: None if it does not expire.

    Returns:
        The stored token, and its secret.

    Raises:
        TokenRefused: a ValueError with a sentence for the user.
    """
    if getattr(user, _LIMITED_BY, None) is not None:
        # The new token could do more, or live longer, than the token that makes it.
        raise TokenRefused("user", _("A token cannot make tokens. Log in to make one."))
    name = " ".join(name.split())
    chosen = None if permissions is None else sorted(set(map(str, permissions)))
    secret = f"cron_{''.join(secrets.choice(PREFIX_SIGNS) for _ in range(PREFIX_LENGTH))}_"
    secret += secrets.token_urlsafe(RANDOM_BYTES)
    token = ApiToken(
        name=name, prefix=prefix_of(secret), digest=digest_of(secret), read_only=read_only, permissions=chosen,
        expires_at=expires_at,
    )  # fmt: skip
    with transaction.atomic():
        # The user's row is locked, so that two requests at once do not make more tokens than allowed.
        owner: Any = locking(get_user_model()._default_manager.filter(pk=user.pk)).first()
        check_token(owner, name, permissions=chosen, expires_at=expires_at)
        token.user = owner
        try:
            with transaction.atomic():
                token.save(force_insert=True)
        except IntegrityError:
            raise _name_taken() from None
    return token, secret


def check_token(
    owner: Any, name: str, *, permissions: Sequence[str] | None = None, expires_at: datetime | None = None
) -> None:
    """Check the arguments of `make_token`. A form calls this before it makes the token.

    Args:
        owner: None if the user is deleted.

    Raises:
        TokenRefused: a ValueError with a sentence for the user.
    """
    now = clock.now()
    if owner is None or not owner.is_active:
        raise TokenRefused("user", _("An inactive user gets no token."))
    _check_name(owner, name)
    if expires_at is not None and clock.is_naive(expires_at):
        raise TokenRefused("expires_at", _("The expiry has no time zone."))
    if expires_at is not None and expires_at <= now:
        raise TokenRefused("expires_at", _("This time has passed."))
    if permissions is not None:
        _check_permissions(owner, permissions)
    if ApiToken.objects.filter(user=owner).live(now).count() >= MOST_LIVE:
        said = _("A user has at most %(count)s live tokens. Revoke one first.")
        raise TokenRefused("user", said % {"count": MOST_LIVE})


def _check_name(owner: Any, name: str) -> None:
    if not name:
        raise TokenRefused("name", _("Give the token a name."))
    if len(name) > NAME_LENGTH:
        raise TokenRefused("name", _("The name has more than %(count)s characters.") % {"count": NAME_LENGTH})
    if clean(name, NAME_LENGTH) != name:
        raise TokenRefused("name", _("The name has a character that cannot be stored."))
    if ApiToken.objects.filter(user=owner, name=name).exists():
        raise _name_taken()


def _name_taken() -> TokenRefused:
    return TokenRefused("name", _("A token with this name exists, maybe a revoked one. Choose another name."))


def _check_permissions(owner: Any, permissions: Sequence[str]) -> None:
    if not permissions:
        raise TokenRefused("permissions", _("Choose at least one permission."))
    if len(permissions) > MOST_PERMISSIONS:
        raise TokenRefused("permissions", _("Choose at most %(count)s permissions.") % {"count": MOST_PERMISSIONS})
    wanted = {name for name in permissions if isinstance(name, str) and _PERMISSION.fullmatch(name)}
    rows = Permission.objects.filter(codename__in=sorted({name.partition(".")[2] for name in wanted}))
    known = {f"{app}.{code}" for app, code in rows.values_list("content_type__app_label", "codename")}
    for name in permissions:
        if name not in wanted or name not in known:
            said = _("There is no permission “%(name)s”.")
            raise TokenRefused("permissions", said % {"name": visible_text(name, 200)})
        if not owner.has_perm(name):
            raise TokenRefused("permissions", _("The owner lacks the permission “%(name)s”.") % {"name": name})


@sensitive_variables()
def find_token(secret: object, now: datetime) -> ApiToken | None:
    """The live token with this secret; None if the text is no secret, or the token or its user is not valid now.

    The row is found by the hash of the whole secret. So an answer takes as long for a secret that begins correctly as
    for any other one.

    The token's `user` is limited: its `has_perm` answers as `may` does. So the rules that ask the user, such as
    `visibility_of` and `handlers.permission.refusal`, hold for the token.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    if not is_secret(secret):
        return None
    digest = digest_of(str(secret))
    token = _readable(ApiToken.objects.filter(digest=digest), now)
    # Databases compare texts without case. A hash that plain SQL has written may differ.
    if token is None or not hmac.compare_digest(token.digest.encode(errors="replace"), digest.encode()):
        return None
    if not token.user.is_active:
        return None
    _limit(token)
    _note_use(token, now)
    return token


@sensitive_variables()
def _readable(rows: Any, now: datetime) -> ApiToken | None:
    """The live token of the query with its user; None if there is none, or if plain SQL has written an unusable value.

    SQLite reads a text that is no instant as None, which would be a token that does not expire. So the database says
    what is empty.
    """
    endless = ExpressionWrapper(Q(expires_at__isnull=True), output_field=BooleanField())
    try:
        token: ApiToken | None = rows.live(now).annotate(endless=endless).select_related("user").first()
    except Exception as error:
        if is_away(error):
            raise
        log.warning("A token is refused, because its row cannot be read: %s", type(error).__name__)
        return None
    if token is None:
        return None
    broken = [field.name for field in token._meta.concrete_fields if problem(field, getattr(token, field.attname))]
    if token.expires_at is None and not token.endless:  # type: ignore[attr-defined]
        broken.append("expires_at")
    if token.permissions is not None and not isinstance(token.permissions, list):
        broken.append("permissions")
    if broken:
        log.warning("Token %s is refused, because it has unusable values: %s", token.pk, ", ".join(broken))
        return None
    return token


def _note_use(token: ApiToken, now: datetime) -> None:
    """Store the time of the use, at most once a minute. A request does not fail or wait because of it."""
    last = token.last_used_at
    if last is not None and now - USE_NOTED_EVERY < last <= now:
        return
    unchanged = ApiToken.objects.filter(pk=token.pk, last_used_at=last)
    try:
        with transaction.atomic():
            # Another request with the token may have locked the row until its own transaction ends.
            if unchanged.select_for_update(skip_locked=True).values_list("pk", flat=True).first() is not None:
                unchanged.update(last_used_at=now)
        token.last_used_at = now
    except Exception as error:
        log.warning("The use of token %s is not noted: %s", token.pk, type(error).__name__)


def may(token: ApiToken, permission: str) -> bool:
    """Whether the token allows this permission (`app_label.codename`).

    The owner must have it now, the token's list must contain it if it has one, and a token that is read only allows
    only what begins with `view_`.
    """
    if token.read_only is not False and not only_reads(permission):
        return False
    if token.permissions is not None and permission not in token.permissions:
        return False
    return bool(type(token.user).has_perm(token.user, permission))


def _limit(token: ApiToken) -> None:
    """Let the user of a token answer as `may` does. `has_perms` asks `has_perm`, and the method for coroutines, too."""
    user: Any = token.user
    setattr(user, _LIMITED_BY, token)
    user.has_perm = partial(_limited, token)
    user.ahas_perm = sync_to_async(user.has_perm)


def _limited(token: ApiToken, permission: str, obj: Any = None) -> bool:
    """`has_perm` of the user of a token. Django's own backend has no permissions on single rows."""
    return obj is None and may(token, permission)


def revoke(token: ApiToken, by: str, now: datetime) -> bool:
    """Revoke a token. It is refused from now on. A revoked token keeps its first time and user.

    Args:
        by: the name of the user who revokes it.

    Returns:
        Whether this call has revoked it; False if it was revoked already.
    """
    rows = ApiToken.objects.filter(pk=token.pk)
    done = rows.filter(revoked_at__isnull=True).update(revoked_at=now, revoked_by=clean(by, 150))
    with suppress(ApiToken.DoesNotExist):  # the cleanup may have removed it
        token.refresh_from_db(fields=["revoked_at", "revoked_by"])
    return bool(done)


def tokens_seen_by(user: Any) -> QuerySet[ApiToken]:
    """The tokens that a user sees and may revoke: their own ones, or all ones with the permission `REVOKE_ANY`."""
    rows = ApiToken.objects.all()
    return rows if user.has_perm(REVOKE_ANY) else rows.filter(user=user.pk)
