"""Salt's ``rabbitmq_user`` states: users of RabbitMQ, their passwords, tags and permissions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Outcome, Plan, Step


def present(
    ctx: Context,
    name: str,
    password: str | None = None,
    force: bool = False,
    tags: object = None,
    perms: Sequence[Mapping[str, Sequence[str]]] = (),
    runas: str | None = None,
) -> Plan:
    """Create the RabbitMQ user ``name``, or change its password, tags and permissions where they differ. The state
    fails if rabbitmqctl fails.

    password
        the user's password; it is changed if it is another one
    force
        True: set the password in each run, or remove it if none is given
    tags
        list of tags, or text with spaces
    perms
        list of maps of virtual host to the list [configure, write, read] of regular expressions
    runas
        user who runs rabbitmqctl
    """
    user = _User(ctx, name, password, runas)
    try:
        user.look(force=force, tags=tags, perms=perms)
    except CommandError as error:
        return Plan.failed(f"Error: {error}")
    if user.exists and not (force or perms or tags or user.password_change):
        return Plan.unchanged(f"User '{name}' is already present.")
    changes = user.changes()
    if not changes:
        return Plan.unchanged(f"'{name}' is already in the desired state.")
    would = f"Configuration for '{name}' will change." if user.exists else f"User '{name}' is set to be created."
    return Plan.change(would, [Step(f"configure the user {name}", user.configure)], changes)


def absent(ctx: Context, name: str, runas: str | None = None) -> Plan:
    """Remove the RabbitMQ user ``name``. Nothing happens if there is none; the state fails if rabbitmqctl fails.

    runas
        user who runs rabbitmqctl
    """
    try:
        if not ctx.call("rabbitmq.user_exists", name, runas=runas):
            return Plan.unchanged(f"The user '{name}' is not present.")
    except CommandError as error:
        return Plan.failed(f"Error: {error}")
    changes = {"name": {"old": name, "new": ""}}

    def work() -> Outcome:
        try:
            ctx.call("rabbitmq.delete_user", name, runas=runas)
        except CommandError as error:
            return Outcome(f"Error: {error}", ok=False)
        return Outcome(f"The user '{name}' was removed.", changes)

    return Plan.change(f"The user '{name}' will be removed.", [Step(f"remove the user {name}", work)], changes)


@dataclass(slots=True)
class _User:
    """A RabbitMQ user: its existing tags and permissions, the changes that it needs, and the calls that make them."""

    ctx: Context
    name: str
    password: str | None
    runas: str | None
    exists: bool = False
    #: "set", "clear" or "".
    password_change: str = ""
    old_tags: list[str] = field(default_factory=list)
    #: None: the tags stay.
    tags: list[str] | None = None
    old_perms: Mapping[str, Any] = field(default_factory=dict)
    #: Virtual host -> permissions that differ.
    perms: dict[str, dict[str, str]] = field(default_factory=dict)

    def look(self, *, force: bool, tags: object, perms: Sequence[Mapping[str, Sequence[str]]]) -> None:
        """Read the RabbitMQ user and store in this object which password, tags and permissions must change. Raise
        CommandError if rabbitmqctl fails.
        """
        users = self._call("list_users")
        self.exists = self.name in users
        if self.exists and self.password is not None:
            wrong = force or not self._call("check_password", self.name, self.password)
            self.password_change = "set" if wrong else ""
        elif self.exists and force:
            self.password_change = "clear"
        if tags is not None:
            # RabbitMQ's list of a user without tags has one empty text.
            self.old_tags = list(users.get(self.name, [""]))
            wanted = (
                tags.split()
                if isinstance(tags, str)
                else [str(each) for each in tags]
                if isinstance(tags, list)
                else []
            )
            self.tags = wanted if set(wanted) ^ {each for each in self.old_tags if each} else None
        if self.exists and perms:
            self.old_perms = self._call("list_user_permissions", self.name)
        for vhost, words in ((vhost, words) for row in perms for vhost, words in row.items()):
            new = dict(zip(("configure", "write", "read"), map(str, words), strict=True))
            if self.old_perms.get(vhost) != new:
                self.perms[vhost] = new

    def changes(self) -> dict[str, object]:
        """Return the map of the changes that ``configure`` makes, with Salt's keys user, password, tags and perms; {}
        if there are none.
        """
        changes: dict[str, object] = {}
        if not self.exists:
            changes["user"] = {"old": "", "new": self.name}
        if self.password_change == "set":
            changes["password"] = {"old": "", "new": "Set password."}
        if self.password_change == "clear":
            changes["password"] = {"old": "Removed password.", "new": ""}
        if self.tags is not None:
            changes["tags"] = {"old": self.old_tags, "new": self.tags}
        if self.perms:
            old = {key: value for vhost in self.perms for key, value in self.old_perms.get(vhost, {}).items()}
            changes["perms"] = ({"old": old} if old else {}) | {"new": self.perms}
        return changes

    def configure(self) -> Outcome:
        """Create or change the user and return the outcome: failed, with the changes made so far, if rabbitmqctl
        fails.
        """
        done: dict[str, object] = {}
        wanted = self.changes()
        try:
            if not self.exists:
                self._call("add_user", self.name, self.password)
                done["user"] = wanted["user"]
            if self.password_change:
                if self.password_change == "set":
                    self._call("change_password", self.name, self.password)
                else:
                    self._call("clear_password", self.name)
                done["password"] = wanted["password"]
            if self.tags is not None:
                self._call("set_user_tags", self.name, self.tags)
                done["tags"] = wanted["tags"]
            for vhost, each in self.perms.items():
                self._call("set_permissions", vhost, self.name, each["configure"], each["write"], each["read"])
        except CommandError as error:
            return Outcome(f"Error: {error}", done, ok=False)
        return Outcome(f"'{self.name}' was configured.", wanted)

    def _call(self, function: str, *args: object) -> Any:
        return self.ctx.call(f"rabbitmq.{function}", *args, runas=self.runas)
