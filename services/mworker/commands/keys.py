"""Minion keys as operators see them: the ``wheel`` command's ``key.*`` functions, and a minion's revocation of its own."""

from __future__ import annotations

import fnmatch
import glob
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from saltwire import tags
from saltwire.errors import PeerFault
from saltwire.keys import PublicKey
from services.kit.control import ControlError
from services.mworker.desk import Desk

#: State in the store -> name of the list in Salt's answers.
LISTS: Mapping[str, str] = {
    "accepted": "minions",
    "pending": "minions_pre",
    "rejected": "minions_rejected",
    "denied": "minions_denied",
}

Wheel: TypeAlias = Callable[[Desk, Mapping[str, Any]], Any]


def wheel(desk: Desk, client: str, fields: Mapping[str, Any]) -> Any:
    """Runs one wheel function. Refuses an unknown one by name."""
    fun = str(fields.get("fun", ""))
    function = WHEELS.get(fun)
    if function is None:
        raise ControlError("UnknownFunction", f"'{fun}' is not available. Wheel functions: {', '.join(sorted(WHEELS))}")
    kwarg = fields.get("kwarg") or {}
    if not isinstance(kwarg, Mapping) or fields.get("arg"):
        raise ControlError("InvocationError", "arguments of wheel functions go by name, in the map kwarg")
    if fun in _CHANGES and "match" not in kwarg:
        raise ControlError("InvocationError", f"{fun} changes keys: name them with match ('*' for all)")
    return function(desk, kwarg)


def revoke_own(desk: Desk, minion_id: str, load: Mapping[str, Any]) -> Any:
    """A minion deletes its own key, unless the master forbids it; then the load is echoed, as Salt does."""
    if not desk.options.allow_minion_key_revoke:
        return dict(load)
    _change(desk, [minion_id], ("accepted",), None, "delete")
    return True


def list_all(desk: Desk, kwarg: Mapping[str, Any]) -> dict[str, list[str]]:
    """All ids by state."""
    everything = desk.store.minion_keys.all()
    return {name: sorted(everything.get(state, ())) for state, name in LISTS.items()}


def list_match(desk: Desk, kwarg: Mapping[str, Any]) -> dict[str, list[str]]:
    """Ids that match ``match`` (a glob, or several by comma, or a list of ids), by state; states without one are left out."""
    return {name: ids for name, ids in _matching(desk, kwarg, tuple(LISTS)).items() if ids}


def finger(desk: Desk, kwarg: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Fingerprints of the matching keys by state; the master's own under ``local`` when it matches ``master.pub``."""
    hash_type = str(kwarg.get("hash_type") or desk.options.hash_type)
    if hash_type not in hashlib.algorithms_guaranteed:
        known = ", ".join(sorted(hashlib.algorithms_guaranteed))
        raise ControlError("InvocationError", f"there is no hash_type '{hash_type}'; there are {known}")
    answer: dict[str, dict[str, str]] = {}
    for state, name in LISTS.items():
        found = {}
        for minion in _matching(desk, kwarg, (state,)).get(name, ()):
            stored = desk.store.minion_keys.state_of(minion)
            if stored is not None:
                found[minion] = _fingerprint(stored[1], hash_type)
        if found:
            answer[name] = found
    if any(fnmatch.fnmatchcase("master.pub", pattern) for pattern in _patterns(kwarg)):
        answer["local"] = {"master.pub": desk.keys.private.public.fingerprint(hash_type)}
    return answer


def accept(desk: Desk, kwarg: Mapping[str, Any]) -> dict[str, list[str]]:
    """Accepts pending keys (rejected and denied ones too where asked); returns the changed ids by their new state."""
    states = ["pending"] + [s for s in ("rejected", "denied") if kwarg.get(f"include_{s}")]
    ids = _ids(desk, kwarg, states)
    return {"minions": _change(desk, ids, states, "accepted", "accept")} if ids else {}


def reject(desk: Desk, kwarg: Mapping[str, Any]) -> dict[str, list[str]]:
    """Rejects pending keys (accepted and denied ones too where asked)."""
    states = ["pending"] + [s for s in ("accepted", "denied") if kwarg.get(f"include_{s}")]
    ids = _ids(desk, kwarg, states)
    return {"minions_rejected": _change(desk, ids, states, "rejected", "reject")} if ids else {}


def delete(desk: Desk, kwarg: Mapping[str, Any]) -> dict[str, list[str]]:
    """Deletes keys in whatever state; returns the deleted ids by the state they had."""
    before = _matching(desk, kwarg, tuple(LISTS))
    names = {name: state for state, name in LISTS.items()}
    return {name: _change(desk, ids, (names[name],), None, "delete") for name, ids in before.items() if ids}


def key_str(desk: Desk, kwarg: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The keys themselves (PEM), by state."""
    answer: dict[str, dict[str, str]] = {}
    for name, ids in list_match(desk, kwarg).items():
        stored = {minion: desk.store.minion_keys.state_of(minion) for minion in ids}
        answer[name] = {minion: entry[1] for minion, entry in stored.items() if entry is not None}
    return answer


#: Wheel function -> what does it.
WHEELS: Mapping[str, Wheel] = {
    "key.list_all": list_all,
    "key.name_match": list_match,
    "key.list_match": list_match,
    "key.finger": finger,
    "key.key_str": key_str,
    "key.accept": accept,
    "key.reject": reject,
    "key.delete": delete,
}

#: Functions that change keys; none of them takes a missing ``match`` for all.
_CHANGES = frozenset({"key.accept", "key.reject", "key.delete"})

#: What was done -> act of the ``salt/key`` event.
_ACTS: Mapping[str, str] = {"accept": "accept", "reject": "reject", "delete": "delete"}


def _change(desk: Desk, ids: Sequence[str], states: Sequence[str], to: str | None, act: str) -> list[str]:
    changed = []
    lost_access = False
    for minion in ids:
        stored = desk.store.minion_keys.state_of(minion)
        if stored is None or stored[0] not in states:
            continue
        lost_access = lost_access or stored[0] == "accepted"
        if to is None:
            desk.store.minion_keys.delete(minion)
            desk.store.cache.forget(minion)
            desk.store.presence.forget(minion)
        else:
            desk.store.minion_keys.store(minion, stored[1], to)
        changed.append(minion)
        desk.fire(tags.KEY, {"result": True, "act": _ACTS[act], "id": minion, "pub": stored[1]})
    # One rotation for all keys of one command: a minion that lost its key can read no further publication.
    if lost_access and to != "accepted" and desk.options.rotate_aes_key:
        desk.store.epochs.rotate_aes()
        desk.metrics.aes_rotations.inc()
        desk.fire("key", {"rotate_aes_key": True})
    return changed


def _ids(desk: Desk, kwarg: Mapping[str, Any], states: Sequence[str]) -> list[str]:
    return [minion for ids in _matching(desk, kwarg, states).values() for minion in ids]


def _matching(desk: Desk, kwarg: Mapping[str, Any], states: Sequence[str]) -> dict[str, list[str]]:
    patterns = _patterns(kwarg)
    everything = desk.store.minion_keys.all()
    return {
        LISTS[state]: sorted(
            minion for minion in everything.get(state, ()) if any(fnmatch.fnmatchcase(minion, one) for one in patterns)
        )
        for state in states
    }


def _patterns(kwarg: Mapping[str, Any]) -> list[str]:
    match = kwarg.get("match", "*")
    if isinstance(match, str):
        return [part.strip() for part in match.split(",") if part.strip()]
    if isinstance(match, Sequence):
        # Names that somebody has found already: one that looks like a glob stands for itself.
        return [glob.escape(str(part)) for part in match]
    raise ControlError("InvocationError", f"match must be a glob or a list of ids, not {type(match).__name__}")


def _fingerprint(pem: str, hash_type: str) -> str:
    try:
        return PublicKey.from_pem(pem).fingerprint(hash_type)
    except PeerFault as error:
        return f"not a public key: {error}"
