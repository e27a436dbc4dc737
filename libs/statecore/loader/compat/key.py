"""``salt.key`` for users' runners and engines: keys of minions on the master on which the module runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecore.loader.current_context import context_of
from statecore.model.errors import CommandError
from statecore.model.ports import MasterCall


class Key:
    """The keys of minions on the running master. Methods raise CommandError on a minion, or if the master refuses."""

    ACC = "minions"
    PEND = "minions_pre"
    REJ = "minions_rejected"
    DEN = "minions_denied"

    def __init__(self, opts: object = None, *args: object, **kwargs: object) -> None:
        """Accept and ignore Salt's arguments: the running master is asked."""

    def __enter__(self) -> Key:
        return self

    def __exit__(self, *args: object) -> None:
        """Do nothing: the object holds no resources."""

    def _wheel(self, fun: str, **given: object) -> Any:
        master = context_of(f"salt.key.Key.{fun}").master
        if master is None:
            raise CommandError("only a master manages keys")
        done = master.wheel(MasterCall(f"key.{fun}", (), given))
        if not done["success"]:
            raise CommandError(f"key.{fun} failed: {done['return']}")
        return done["return"]

    def list_keys(self) -> dict[str, list[str]]:
        """Map of a key's state ("minions", "minions_pre", "minions_rejected", "minions_denied") to minion ids."""
        found: Mapping[str, list[str]] = self._wheel("list_all")
        return {name: ids for name, ids in found.items() if name.startswith("minions")}

    def all_keys(self) -> dict[str, list[str]]:
        """Map of a key's state ("minions" ...) to minion ids, and of "local" to the names of the master's own keys."""
        return dict(self._wheel("list_all"))

    def list_match(self, match: str) -> dict[str, list[str]]:
        """Map of a key's state ("minions" ...) to the minion ids that match a glob."""
        return dict(self._wheel("name_match", match=match))

    name_match = glob_match = list_match

    def accept(self, match: str | None = None, **given: object) -> dict[str, list[str]]:
        """Accept the keys of minions that match a glob. Return {"minions": ids of the minions whose keys were
        accepted}.
        """
        return dict(self._wheel("accept", match=match, **given))

    def reject(self, match: str | None = None, **given: object) -> dict[str, list[str]]:
        """Reject the keys of minions that match a glob. Return {"minions_rejected": ids of the minions whose keys were
        rejected}.
        """
        return dict(self._wheel("reject", match=match, **given))

    def delete_key(self, match: str | None = None, **given: object) -> dict[str, list[str]]:
        """Delete the keys of minions that match a glob. Return a map of a key's state ("minions" ...) to the ids of the
        remaining minions.
        """
        self._wheel("delete", match=match)
        return self.list_keys()

    def finger(self, match: str, hash_type: str | None = None) -> dict[str, dict[str, str]]:
        """Return {state of the key: {minion id: fingerprint}} for the keys of minions that match a glob."""
        return dict(self._wheel("finger", match=match, **({"hash_type": hash_type} if hash_type else {})))

    def key_str(self, match: str) -> dict[str, dict[str, str]]:
        """Return {state of the key: {minion id: public key in PEM}} for the keys of minions that match a glob."""
        return dict(self._wheel("key_str", match=match))


def get_key(opts: object) -> Key:
    """Return a Key, the object for the keys of minions on the running master. ``opts`` is ignored."""
    return Key(opts)
