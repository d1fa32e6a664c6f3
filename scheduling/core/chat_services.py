"""The chat services that a channel can name, and the addresses of apprise for them.

The list is closed. Each service here sends its messages with `requests.get`, `requests.post` and the like, and with
nothing else, so each of its connections can be checked. Services that reach this machine (syslog, dbus, desktop
notices, mail programs), that keep a connection open (MQTT, IRC, XMPP) or that load further addresses from files are
not in the list. Matrix is not in the list either: it keeps a session with keys.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class ChatService:
    """A service that apprise can send to.

    Args:
        plugin: the module in `apprise.plugins`, and the class in it.
        schemes: what the addresses begin with.
        options: the options after the question mark that an address may have. Other options of apprise read files,
            switch off the check of certificates, or change the time limits.
        prefixes: options that begin with one of these characters are allowed, too. They name headers and values.
        level: the kind of message, in apprise's words. For Opsgenie, an `info` closes an alert instead of opening one.
    """

    name: str
    plugin: str
    schemes: tuple[str, ...]
    options: frozenset[str] = frozenset()
    prefixes: str = ""
    level: str = "info"


def _service(
    name: str, plugin: str, schemes: str, options: str = "", prefixes: str = "", level: str = "info"
) -> ChatService:
    return ChatService(name, plugin, tuple(schemes.split()), frozenset(options.split()), prefixes, level)


SERVICES = (
    _service("Slack", "slack.NotifySlack", "slack", "blocks footer image mode timestamp to"),
    _service("Discord", "discord.NotifyDiscord", "discord", "avatar fields footer image ping thread tts"),
    _service(
        "Microsoft Teams (Workflows)", "workflows.NotifyWorkflows", "workflows workflow",
        "api-version id image pa powerautomate route routeid sig sp sv ver wrap",
    ),
    _service("Google Chat", "google_chat.NotifyGoogleChat", "gchat", "key thread token workspace"),
    _service("Telegram", "telegram.NotifyTelegram", "tgram", "preview silent thread to topic"),
    _service("Webex", "webexteams.NotifyWebexTeams", "webex wxteams", "mode to token"),
    _service("Zulip", "zulip.NotifyZulip", "zulip", "to token"),
    _service(
        "Mattermost", "mattermost.NotifyMattermost", "mmosts mmost",
        "botname channel channels icon_url image mode team to",
    ),
    _service("Rocket.Chat", "rocketchat.NotifyRocketChat", "rockets rocket", "avatar mode to webhook"),
    _service("Nextcloud Talk", "nextcloudtalk.NotifyNextcloudTalk", "nctalks nctalk", "secret silent url_prefix"),
    _service("ntfy", "ntfy.NotifyNtfy", "ntfys ntfy", "auth click delay image mode priority to token xtags"),
    _service("Gotify", "gotify.NotifyGotify", "gotifys gotify", "priority"),
    _service("Pushover", "pushover.NotifyPushover", "pover", "expire interval priority sound to url url_title"),
    _service(
        "PagerDuty", "pagerduty.NotifyPagerDuty", "pagerduty",
        "action class click dedup group image region severity", "+",
    ),
    _service(
        "Opsgenie", "opsgenie.NotifyOpsgenie", "opsgenie", "action alias entity priority region tags to", "+", "warning"
    ),
    _service("JSON webhook", "custom_json.NotifyJSON", "jsons json", "method", "+-:"),
    _service("Form webhook", "custom_form.NotifyForm", "forms form", "method", "+-:"),
)  # fmt: skip

SCHEMES = {scheme: service for service in SERVICES for scheme in service.schemes}
"""Each scheme and its service."""

_MATTERMOST_WEBHOOK = re.compile(
    r"https://(?P<host>[^/?#@\s]+)(?P<folder>(?:/[^/?#\s]+)*)/hooks/(?P<token>[A-Za-z0-9]{16,64})/?(?P<options>\?\S*)?"
)
_VARIABLE = re.compile(r"\$\{([A-Z0-9_]{1,100})\}")

VARIABLES = ("CRON_CHAT_", "CRON_WEBHOOK_")
"""The environment variables that may hold the address or the secret of a channel begin so."""


def scheme_of(address: str) -> str:
    """What stands before `://`, in lower case; empty if the address has no scheme."""
    scheme, mark, _rest = address.partition("://")
    return scheme.strip().lower() if mark else ""


def with_own_scheme(address: str) -> str:
    """The same address with the scheme of its service, if its form tells the service; otherwise unchanged.

    Mattermost shows the address of a webhook as `https://host/hooks/token`. Apprise 2.2 understood it on hosts whose
    name begins with `mattermost.`, and 2.3 no longer does. Rocket.Chat has two parts after `/hooks/`, not one.
    """
    if found := _MATTERMOST_WEBHOOK.fullmatch(address.strip()):
        return f"mmosts://{found['host']}{found['folder']}/{found['token']}/{found['options'] or ''}"
    return address


def variable_of(text: str, *beginnings: str) -> str:
    """The environment variable that a text names: `${CRON_CHAT_…}` or `${CRON_WEBHOOK_…}`; empty if it names none.

    The variable must be the whole text, and the name must have one of these beginnings. Otherwise, an operator could
    send the password of the database to a server of their own.

    Args:
        beginnings: what the name of the variable may begin with; by default `VARIABLES`.
    """
    found = _VARIABLE.fullmatch(text.strip())
    allowed = beginnings or VARIABLES
    return found[1] if found and found[1].startswith(allowed) and found[1] not in allowed else ""


def shown(address: str) -> str:
    """What a page may show of an address: the scheme, or the name of the environment variable."""
    if variable := variable_of(address):
        return f"${{{variable}}}"
    scheme = scheme_of(address)
    if scheme in SCHEMES:
        return f"{scheme}://…"
    return f"{scheme}://…" if scheme in ("http", "https") else "…"
