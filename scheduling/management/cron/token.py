"""`cron token`: API tokens of a user."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.contrib.admin.models import ADDITION
from django.utils import timezone as clock
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables

from scheduling.core.text import visible_text
from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.moments import moment
from scheduling.management.cron.paging import FEW, MOST, whole
from scheduling.models import ApiToken
from scheduling.operations.actor import Actor
from scheduling.operations.audit import record
from scheduling.operations.refused import Code, Refused
from scheduling.operations.token_history import making_edits
from scheduling.operations.token_shapes import TokenShape
from scheduling.operations.tokens import REVOKE_ANY, TokenRefused, make_token, revoke, tokens_seen_by

HELP = "Makes, lists and revokes API tokens. `make` prints the secret once."
ADD, VIEW = "scheduling.add_apitoken", "scheduling.view_apitoken"
DAYS, LONGEST_DAYS = 90, 3_650


def add_arguments(parser: ArgumentParser) -> None:
    """What to do, the name of the token, and what it allows."""
    parser.add_argument("what", choices=("make", "list", "revoke"))
    parser.add_argument("name", nargs="?", help="the name of the token; `revoke` also takes its prefix")
    parser.add_argument("--read-only", action="store_true", help="it allows only to view")
    permission = "a permission such as scheduling.run_scheduler (may be given several times; default: all of the owner)"
    parser.add_argument("--permission", action="append", metavar="PERMISSION", help=permission)
    days = f"it expires after so many days; 0: never (default: {DAYS})"
    parser.add_argument("--days", type=whole(0, LONGEST_DAYS), default=DAYS, help=days)
    parser.add_argument("--limit", type=whole(1, MOST), default=FEW, help=f"of `list`: rows (default: {FEW})")


def run(console: Console, options: Mapping[str, Any]) -> int:
    """Do one of the three."""
    if options["what"] == "list":
        return _list(console, options["limit"])
    if not options["name"]:
        console.refused(Refused.value("name", _("Name the token."), "required"))
        return Exit.USAGE
    return _make(console, options) if options["what"] == "make" else _revoke(console, options["name"])


@sensitive_variables()
def _make(console: Console, options: Mapping[str, Any]) -> int:
    actor, days = console.actor(changes=True), options["days"]
    actor.must(ADD)
    try:
        row, secret = make_token(
            actor.user, options["name"], read_only=options["read_only"], permissions=options["permission"],
            expires_at=None if days == 0 else clock.now() + timedelta(days=days),
        )  # fmt: skip
    except TokenRefused as refused:
        raise Refused.value(refused.field, str(refused)) from None
    record(actor, [row], "", making_edits(row), ADDITION)
    if console.as_json:
        console.json("token", token=_shape(row), secret=secret)
        return Exit.DONE
    console.say(secret)
    said = _("This is the secret of the token “%(name)s” of %(user)s. It is not shown again.")
    console.note(said % {"name": row, "user": actor.get_username()})
    return Exit.DONE


def _list(console: Console, limit: int) -> int:
    actor = console.actor()
    actor.must(VIEW, REVOKE_ANY)
    found = list(tokens_seen_by(actor).select_related("user").order_by("-pk")[: limit + 1])
    shapes = [_shape(row) for row in found[:limit]]
    if console.as_json:
        console.json("tokens", tokens=shapes, is_cut=len(found) > limit)
        return Exit.DONE
    if shapes:
        columns = [_("Prefix"), _("Name"), _("Owner"), _("State"), _("Allows"), _("Expires"), _("Last used")]
        console.table(columns, [_row(one) for one in shapes])
    else:
        console.note(_("There is no token."))
    if len(found) > limit:
        console.note(_("There are more: --limit"))
    return Exit.DONE


def _revoke(console: Console, name: str) -> int:
    actor = console.actor(changes=True)
    actor.must(VIEW, REVOKE_ANY)
    row = _find(actor, name)
    if revoke(row, actor.get_username(), clock.now()):
        record(actor, [row], "revoke")
        said = _("The token “%(name)s” is revoked.")
    else:
        said = _("The token “%(name)s” was revoked already.")
    if console.as_json:
        console.json("token", token=_shape(row))
    else:
        console.say(said % {"name": row})
    return Exit.DONE


def _find(actor: Actor, name: str) -> ApiToken:
    if not name.isprintable():
        name = ""
    for column in ("prefix", "name"):
        found = list(tokens_seen_by(actor).select_related("user").filter(**{column: name})[:2]) if name else []
        if len(found) > 1:
            raise Refused(Code.AMBIGUOUS, _("Several users have a token with this name. Give its prefix."))
        if found:
            return found[0]
    said = _("There is no token “%(name)s”, or you may not see it.") % {"name": visible_text(name, 100)}
    raise Refused(Code.NOT_FOUND, said)


def _shape(row: ApiToken) -> TokenShape:
    return TokenShape(
        id=row.pk, name=row.name, prefix=row.prefix, user=row.user.get_username(), state=str(row.state(clock.now())),
        read_only=row.read_only, permissions=row.permissions, created_at=row.created_at, expires_at=row.expires_at,
        last_used_at=row.last_used_at, revoked_at=row.revoked_at,
    )  # fmt: skip


def _row(one: TokenShape) -> list[object]:
    allowed = _("all of the owner") if one.permissions is None else ", ".join(one.permissions)
    allows = _("reading: %(allowed)s") % {"allowed": allowed} if one.read_only else allowed
    return [one.prefix, one.name, one.user, one.state, allows, moment(one.expires_at), moment(one.last_used_at)]
