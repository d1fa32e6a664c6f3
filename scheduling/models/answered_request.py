"""AnsweredRequest: the answer to a request of the HTTP API that had an Idempotency-Key."""

from __future__ import annotations

import hashlib
from typing import ClassVar

from django.db import models
from django.utils import timezone as clock
from django.utils.translation import gettext_lazy as _

from scheduling.core.text import visible_text

OWNER_LENGTH = 64
LONGEST_KEY = 200


class AnsweredRequest(models.Model):
    """The first request with a key, and its answer. A repeated request gets this answer again.

    The row is inserted before the first request is answered, so that only one of two requests at once is carried out.
    `cleanup_executions` removes the row after a day.
    """

    owner = models.CharField(_("owner"), max_length=OWNER_LENGTH)
    """Who has sent the request: `user:12` or `token:5`. Each owner has keys of their own."""
    key = models.CharField(_("key"), max_length=LONGEST_KEY)
    """The Idempotency-Key. It is shown only; `key_digest` identifies the row."""
    key_digest = models.CharField(max_length=64, unique=True)
    """The hash of owner and key (`digest_of`). Databases compare texts without case, accents and spaces at the end."""
    request_digest = models.CharField(max_length=64)
    """The SHA-256 of method, path, query and body, as 64 hexadecimal digits."""
    status = models.PositiveSmallIntegerField(_("status"), null=True, blank=True)
    """The HTTP status of the answer. NULL: the first request has no answer yet."""
    body = models.TextField(_("answer"), blank=True, default="")
    """The JSON of the answer."""
    headers = models.JSONField(_("headers"), default=dict, blank=True)
    """The headers of the answer, which maps names to values."""
    created_at = models.DateTimeField(_("created"), default=clock.now, db_index=True)
    """When the first request with the key was sent."""
    taken_at = models.DateTimeField(null=True, blank=True)
    """When a request began to carry it out. If there is no answer, a repeated request goes on some time after that.
    NULL: at once, because the request has ended with an error."""

    objects: ClassVar[models.Manager[AnsweredRequest]] = models.Manager()

    class Meta:
        verbose_name = _("answered request")
        verbose_name_plural = _("answered requests")
        ordering = ["-id"]
        default_permissions = ()

    def __str__(self) -> str:
        return f"{visible_text(self.owner, OWNER_LENGTH)} {visible_text(self.key, LONGEST_KEY)}"

    @staticmethod
    def digest_of(owner: str, key: str) -> str:
        """The value of `key_digest`: 64 hexadecimal digits. Two pairs of owner and key have two values."""
        return hashlib.sha256(f"{len(owner)}:{owner}{key}".encode(errors="surrogatepass")).hexdigest()
