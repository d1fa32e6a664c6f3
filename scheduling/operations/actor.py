"""Actor: in whose name something is done, and through which door. The rules of users and groups hold at each door."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduling.models.author import Author, AuthorKind
from scheduling.models.visibility import Visibility, visibility_of
from scheduling.operations.refused import Refused

BY_LENGTH = 150
"""The greatest length of the name that a run keeps of who asked for it."""


class Actor:
    """A user at one of the doors. It answers `has_perm`, `groups` and `get_username` as the user does.

    So each function that asks a user for permissions also takes an actor, and a token never allows more than its
    owner has.

    Args:
        user: the user; None for a person at the terminal who only reads. This person sees everything.
        via: the door, for the history: `token “deploy”` or `command`. Empty for the admin.
        limit: says whether the door allows a permission that the user has. None: it allows each of them.
    """

    def __init__(self, user: Any, via: str = "", limit: Callable[[str], bool] | None = None) -> None:
        self.user, self.via, self._limit = user, via, limit

    @property
    def pk(self) -> Any:
        """The primary key of the user; None without one."""
        return None if self.user is None else self.user.pk

    @property
    def groups(self) -> Any:
        """The groups of the user, as a manager."""
        return getattr(self.user, "groups", None)

    def has_perm(self, permission: str, obj: Any = None) -> bool:
        """Whether the user has the permission now, and the door allows it.

        Args:
            permission: `app_label.codename`.
        """
        if self._limit is not None and not self._limit(permission):
            return False
        return self.user is None or bool(self.user.has_perm(permission))

    def get_username(self) -> str:
        """The name of the user; empty at the terminal."""
        return "" if self.user is None else str(self.user.get_username())

    @property
    def by(self) -> str:
        """The name that runs and reasons keep of who asked."""
        name = self.get_username()
        return (f"{name}, {self.via}" if self.via else name)[:BY_LENGTH]

    def author(self, reason: str = "", *, file: str = "", undoes: int | None = None) -> Author:
        """The author of what the actor changes.

        Args:
            reason: why, in the words of the actor.
            file: the schedule file that is applied; empty: none.
            undoes: the number of the revision that is taken back.
        """
        kind = AuthorKind.FILE if file else self.author_kind
        return Author(kind, ", ".join(filter(None, (file, self.by))), reason, undoes)

    @property
    def author_kind(self) -> AuthorKind:
        """What the doors are to the revisions of schedules."""
        return AuthorKind.COMMAND if self.via else AuthorKind.USER

    @property
    def visible(self) -> Visibility:
        """What the actor sees."""
        return visibility_of(self)

    def must(self, *permissions: str) -> None:
        """Go on only with one of these permissions.

        Raises:
            Refused: FORBIDDEN; it names the first permission.
        """
        if any(self.has_perm(permission) for permission in permissions):
            return
        # The user of a token answers for the token. The class answers for the user.
        user = self.user
        own = user is None or any(user.__class__.has_perm(user, permission) for permission in permissions)
        raise Refused.forbidden(permissions[0], door=self.via if own else "")
