"""An address for each chat service. No chat has it."""

from __future__ import annotations

ADDRESSES = {
    "slack": "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7Q/#general",
    "discord": "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV",
    "workflows": "workflows://prod-1.westus.logic.azure.com:443/643e69f83c8944/signature-of-the-flow",
    "workflow": "workflow://prod-1.westus.logic.azure.com:443/643e69f83c8944/signature-of-the-flow",
    "gchat": "gchat://workspace/webhook-key/webhook-token",
    "tgram": "tgram://123456789:AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHHIII/12345678/",
    "webex": f"webex://{'ab12' * 20}",
    "wxteams": f"wxteams://{'ab12' * 20}",
    "zulip": "zulip://bot-name@organisation/a6a7a8a9a0b1b2b3b4b5b6b7b8b9b0c1/general",
    "mmosts": "mmosts://chat.example.com/3ccdd113474722377935511fc85d3dd4",
    "mmost": "mmost://chat.example.com:8065/3ccdd113474722377935511fc85d3dd4",
    "rockets": "rockets://user:password@chat.example.com/#general",
    "rocket": "rocket://user:password@chat.example.com:3000/#general",
    "nctalks": "nctalks://user:password@cloud.example.com/roomid",
    "nctalk": "nctalk://user:password@cloud.example.com/roomid",
    "ntfys": "ntfys://user:password@ntfy.example.com/topic",
    "ntfy": "ntfy://ntfy.example.com/topic",
    "gotifys": "gotifys://chat.example.com/AbCdEfGhIjKlMnO",
    "gotify": "gotify://chat.example.com:8080/AbCdEfGhIjKlMnO",
    "pover": f"pover://{'u' * 30}@{'a' * 30}",
    "pagerduty": f"pagerduty://{'a' * 32}@{'b' * 20}",
    "opsgenie": "opsgenie://8b799edf-6f98-4d3a-9be7-2862fb4e5752",
    "jsons": "jsons://user:password@chat.example.com/hook?+X-Token=token&:room=general",
    "json": "json://chat.example.com:8080/hook?-key=token&method=put",
    "forms": "forms://chat.example.com/hook",
    "form": "form://chat.example.com/hook",
}
"""Each scheme, and an address that begins with it."""

HOSTS = {
    "slack": "hooks.slack.com", "discord": "discord.com", "workflows": "prod-1.westus.logic.azure.com",
    "gchat": "chat.googleapis.com", "tgram": "api.telegram.org", "webex": "api.ciscospark.com",
    "zulip": "organisation.zulipchat.com", "pover": "api.pushover.net", "pagerduty": "events.pagerduty.com",
    "opsgenie": "api.opsgenie.com", "ntfys": "ntfy.example.com", "nctalks": "cloud.example.com",
}  # fmt: skip
"""The hosts that addresses lead to. All other addresses lead to chat.example.com."""
