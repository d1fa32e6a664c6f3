"""ApiToken: a secret that a program shows to the HTTP API instead of a user's password."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone as clock
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from scheduling.core.text import visible_text

NAME_LENGTH = 80


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    """Filters of tokens."""

    def live(self, now: datetime) -> ApiTokenQuerySet:
        """The tokens that are neither revoked nor expired. Their owners may be inactive."""
        return self.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=now), revoked_at__isnull=True)


class ApiToken(models.Model):
    """A token of a user. It allows at most what the user may do.

    The row has no secret: it keeps the hash of the secret. The hash is not editable, and no
    page, list or filter shows it.
    """

    class States(models.TextChoices):
        LIVE = "live", _("live")
        EXPIRED = "expired", _("expired")
        REVOKED = "revoked", _("revoked")

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", db_index=False, verbose_name=_("owner")
    )
    name = models.CharField(_("name"), max_length=NAME_LENGTH)
    prefix = models.CharField(_("prefix"), max_length=16, editable=False)
    """The beginning of the secret, such as `cron_k3v9x0qa`. It is shown, so that users recognise the token."""
    digest = models.CharField(max_length=64, unique=True, editable=False)
    """The SHA-256 of the whole secret, as 64 hexadecimal digits."""
    read_only = models.BooleanField(_("read only"), default=False)
    permissions = models.JSONField(_("permissions"), null=True, blank=True)
    """A list of `app_label.codename`. NULL: all permissions of the owner."""
    created_at = models.DateTimeField(_("created"), default=clock.now, editable=False)
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True)
    last_used_at = models.DateTimeField(_("last used"), null=True, blank=True, editable=False)
    """The last use, to the minute."""
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True, editable=False)
    revoked_by = models.CharField(_("revoked by"), max_length=150, blank=True, default="", editable=False)

    objects: ClassVar[models.Manager[ApiToken]] = ApiTokenQuerySet.as_manager()

    class Meta:
        verbose_name = _("API token")
        verbose_name_plural = _("API tokens")
        ordering = ["-id"]
        default_permissions = ("add", "view")
        permissions = [("revoke_any_token", gettext_noop("Can see the API tokens of all users and revoke them"))]
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="scheduling_api_token_name")]

    def __str__(self) -> str:
        return visible_text(self.name, NAME_LENGTH)

    def state(self, now: datetime) -> States:
        """Whether the token is live, expired or revoked. A live token of an inactive user is refused all the same."""
        if self.revoked_at is not None:
            return self.States.REVOKED
        return self.States.EXPIRED if self.expires_at is not None and self.expires_at <= now else self.States.LIVE
