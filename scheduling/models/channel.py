"""Channel: a place in a chat service that messages are sent to."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.core.chat_services import shown
from scheduling.core.text import visible_text

ADDRESS_LENGTH = 2_000


class Channel(models.Model):
    """A name for the address of a chat.

    The address is a secret: it has a token, and with the token everybody can write to the chat. So it is not editable:
    no form, history entry or list takes it along by itself. The form of a channel replaces it and never shows it.
    """

    name = models.CharField(_("name"), max_length=100, unique=True)
    description = models.CharField(_("description"), max_length=255, blank=True, default="")
    address = models.TextField(_("address"), editable=False)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        verbose_name = _("channel")
        verbose_name_plural = _("channels")
        ordering = ["name"]

    def __str__(self) -> str:
        return visible_text(self.name)

    @property
    def shown_address(self) -> str:
        """The part of the address that a page may show, such as `slack://…`."""
        return shown(str(self.address or ""))
