"""Minion keys as operators see them: the ``wheel`` command's ``key.*`` functions, and a minion's revocation of its own.

Names, arguments and answers are those of Salt's wheel/key.py; ``key.import`` is ours.
"""

from __future__ import annotations

import fnmatch
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from masterstore.minion_keys import STATES as STATE_ORDER
from saltern.kit.links.control import ControlError
from saltern.mworker.worker_context import WorkerContext
from saltwire import tags
from saltwire.errors import PeerFault
from saltwire.ids import is_minion_id
from saltwire.keys import PrivateKey, PublicKey, clean_pem

#: State in the store -> name of the list in Salt's answers.
LISTS: Mapping[str, str] = {
    "pending": "minions_pre",
    "rejected": "minions_rejected",
    "accepted": "minions",
    "denied": "minions_denied",
}

#: The same the other way round.
STATES: Mapping[str, str] = {name: state for state, name in LISTS.items()}

Wheel: TypeAlias = Callable[[WorkerContext, Mapping[str, Any]], Any]


def call(context: WorkerContext, fun: str, kwarg: Mapping[str, Any]) -> Any:
    """Runs one of WHEELS."""
    if fun in _CHANGES and "match" not in kwarg:
        raise ControlError("InvocationError", f"{fun} changes keys: name them with match ('*' for all)")
    return WHEELS[fun](context, kwarg)


def revoke_own(context: WorkerContext, minion_id: str, load: Mapping[str, Any]) -> Any:
    """A minion deletes its own key, unless the master forbids it; then the load is echoed, as Salt does.

    With ``preserve_minion_cache`` the master goes on knowing its grains, pillar and mine.
    """
    if not context.options.allow_minion_key_revoke:
        return dict(load)
    _change(context, {"accepted": [minion_id]}, None, "delete", {"preserve_minions": load.get("preserve_minion_cache")})
    return True


def known(context: WorkerContext, client: str, fields: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What is known of these ``minions``: {id: {"key": its state or "", "age": seconds since it was heard of, or None}}."""
    given = fields.get("minions")
    if not isinstance(given, list):
        raise ControlError("InvocationError", "minions must be a list of ids")
    minions = list(map(str, given))
    now, seen = time.time(), context.store.presence.last_seen(minions)
    pems = {state: context.store.minion_keys.pems(state, minions) for state in STATE_ORDER}
    return {
        minion: {
            "key": next((state for state in STATE_ORDER if minion in pems[state]), ""),
            "age": max(0.0, now - seen[minion] / 1000) if minion in seen else None,
        }
        for minion in minions
    }


def list_all(context: WorkerContext, kwarg: Mapping[str, Any]) -> dict[str, list[str]]:
    """All ids by state."""
    everything = context.store.minion_keys.all()
    return {name: sorted(everything.get(state, ()), key=str.lower) for state, name in LISTS.items()}


def list_one(context: WorkerContext, kwarg: Mapping[str, Any]) -> dict[str, list[str]]:
    """The ids in the state that ``match`` begins: acc, pre, un, rej, den; ``all``: every state."""
    word = str(kwarg.get("match", ""))
    everything = list_all(context, kwarg)
    if word.startswith("all"):
        return everything
    name = list_named(word)
    if not name:
        raise ControlError("InvocationError", f"'{word}' names no list of keys: acc, pre, un, rej, den or all")
    return {name: everything[name]}


def list_match(context: WorkerContext, kwarg: Mapping[str, Any]) -> dict[str, list[str]]:
    """Ids that match ``match`` (a glob, or several by comma, or a list of ids), by state; states without one are left out."""
    return {LISTS[state]: ids for state, ids in _matching(context, kwarg, tuple(LISTS)).items() if ids}


def finger(context: WorkerContext, kwarg: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Fingerprints of the matching keys by state; the master's own under ``local`` when it matches ``master.pub``."""
    hash_type = _hash_type(context, kwarg)
    answer = {
        name: {minion: _fingerprint(pem, hash_type) for minion, pem in pems.items()}
        for name, pems in key_str(context, kwarg).items()
    }
    if _wanted(kwarg)("master.pub"):
        answer |= finger_master(context, kwarg)
    return answer


def finger_master(context: WorkerContext, kwarg: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The fingerprint of the master's own key."""
    return {"local": {"master.pub": context.keys.private.public.fingerprint(_hash_type(context, kwarg))}}


def key_str(context: WorkerContext, kwarg: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The keys themselves (PEM), by state."""
    found = _matching(context, kwarg, tuple(LISTS))
    return {LISTS[state]: context.store.minion_keys.pems(state, ids) for state, ids in found.items() if ids}


def master_key_str(context: WorkerContext, kwarg: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The master's own public key (PEM)."""
    return {"local": {"master.pub": context.keys.private.public.pem}}


def accept(context: WorkerContext, kwarg: Mapping[str, Any]) -> dict[str, list[str]]:
    """Accepts pending keys (rejected and denied ones too where asked); returns the changed ids by their new state.

    A denied key takes the place of the one that is in force.
    """
    states = ["pending"] + [s for s in ("rejected", "denied") if kwarg.get(f"include_{s}")]
    return _moved(context, _found(context, kwarg, states), "accepted", kwarg)


def reject(context: WorkerContext, kwarg: Mapping[str, Any]) -> dict[str, list[str]]:
    """Rejects pending keys (accepted and denied ones too where asked)."""
    states = ["pending"] + [s for s in ("denied", "accepted") if kwarg.get(f"include_{s}")]
    return _moved(context, _found(context, kwarg, states), "rejected", kwarg)


def delete(context: WorkerContext, kwarg: Mapping[str, Any]) -> dict[str, list[str]]:
    """Deletes keys in whatever state; returns the deleted ids by the state they had.

    ``rotate_aes_key: False``: the key of publications stays though somebody lost access. ``preserve_minions: True``: grains,
    pillar and mine of the minion are kept.
    """
    changed = _change(context, _found(context, kwarg, tuple(LISTS)), None, "delete", kwarg)
    return {LISTS[state]: ids for state, ids in changed.items() if ids}


def bring(context: WorkerContext, kwarg: Mapping[str, Any]) -> dict[str, Any]:
    """Takes keys from elsewhere: ``keys`` is {list: {id: PEM}}, ``replace`` whether they count more than what is here.

    Answers ``stored`` ({list: ids}), ``same`` (ids), and with a reason each ``kept`` (another key is here) and ``refused``.
    Importing the same twice changes nothing; a key that waits here and is accepted there is accepted.
    """
    given = kwarg.get("keys")
    if not isinstance(given, Mapping) or not all(isinstance(pems, Mapping) for pems in given.values()):
        raise ControlError("InvocationError", "keys must be a map of lists (minions, minions_pre, ...), each id: PEM")
    if unknown := sorted(set(given) - set(STATES)):
        raise ControlError("InvocationError", f"there is no list {', '.join(map(str, unknown))}: {', '.join(STATES)}")
    stored: dict[str, list[str]] = {}
    answer: dict[str, Any] = {"stored": stored, "same": [], "kept": {}, "refused": {}}
    lost_access = False
    for name, pems in given.items():
        for minion, pem in pems.items():
            verdict, why = _judged(context, minion, pem, STATES[name], replace=bool(kwarg.get("replace")))
            if verdict == "same":
                answer["same"].append(minion)
            elif verdict != "stored":
                answer[verdict][str(minion)] = why
            else:
                lost_access = lost_access or why == "accepted"
                context.store.minion_keys.store(minion, clean_pem(pem), STATES[name])
                stored.setdefault(name, []).append(minion)
                context.fire(tags.KEY, {"result": True, "act": _IMPORTED[name], "id": minion, "pub": clean_pem(pem)})
    if lost_access:
        _rotate(context, kwarg)
    return answer


def generate(context: WorkerContext, kwarg: Mapping[str, Any]) -> dict[str, str]:
    """A new key pair, ``pub`` and ``priv``, of which the master keeps nothing. ``keysize`` in bits."""
    bits = kwarg.get("keysize", _SMALLEST)
    if not isinstance(bits, int) or not _SMALLEST <= bits <= _LARGEST:
        raise ControlError("InvocationError", f"keysize must be {_SMALLEST} to {_LARGEST} bits, not {bits!r}")
    private = PrivateKey.generate(bits)
    return {"priv": private.to_pem().decode(), "pub": private.public.pem + "\n"}


def generate_accepted(context: WorkerContext, kwarg: Mapping[str, Any]) -> dict[str, str]:
    """A new key pair whose public key is accepted for ``id_``; {} where that id has a key and ``force`` is not set."""
    minion = kwarg.get("id_")
    if not is_minion_id(minion):
        raise ControlError("InvocationError", f"{minion!r} is no minion id: name it with id_")
    made = generate(context, kwarg)
    brought = bring(context, {"keys": {"minions": {minion: made["pub"]}}, "replace": bool(kwarg.get("force"))})
    return made if brought["stored"] else {}


def _by_name(function: Wheel) -> Wheel:
    """The function for keys that are named by the list they are in: ``match`` is {list: ids}."""

    def run(context: WorkerContext, kwarg: Mapping[str, Any]) -> Any:
        match = kwarg.get("match")
        lists = match if isinstance(match, Mapping) else {"": None}
        if not all(name in STATES and isinstance(ids, list) for name, ids in lists.items()):
            raise ControlError("InvocationError", f"match must be a map of lists ({', '.join(STATES)}) to ids")
        return function(context, kwarg)

    return run


#: Wheel function -> what does it.
WHEELS: Mapping[str, Wheel] = {
    "key.list": list_one,
    "key.list_all": list_all,
    "key.glob_match": list_match,
    "key.name_match": list_match,
    "key.list_match": list_match,
    "key.finger": finger,
    "key.finger_master": finger_master,
    "key.key_str": key_str,
    "key.print": key_str,
    "key.master_key_str": master_key_str,
    "key.accept": accept,
    "key.accept_dict": _by_name(accept),
    "key.reject": reject,
    "key.reject_dict": _by_name(reject),
    "key.delete": delete,
    "key.delete_dict": _by_name(delete),
    "key.gen": generate,
    "key.gen_accept": generate_accepted,
    "key.import": bring,
}

#: Functions that change keys; none of them takes a missing ``match`` for all.
_CHANGES = frozenset(f"key.{verb}{kind}" for verb in ("accept", "reject", "delete") for kind in ("", "_dict"))

#: First letters of the word that names a list -> the list.
_WORDS: Mapping[str, str] = {
    "acc": "minions",
    "pre": "minions_pre",
    "un": "minions_pre",
    "rej": "minions_rejected",
    "den": "minions_denied",
}

#: What was done -> act of the ``salt/key`` event.
_ACTS: Mapping[str, str] = {"accept": "accept", "reject": "reject", "delete": "delete"}
_IMPORTED: Mapping[str, str] = {
    "minions": "accept",
    "minions_pre": "pend",
    "minions_rejected": "reject",
    "minions_denied": "denied",
}

#: Bits of a key pair that the master makes.
_SMALLEST, _LARGEST = 2048, 16384


def list_named(word: str) -> str:
    """The list that a word (acc, accepted, pre, un, ...) means; empty: none."""
    return next((name for start, name in _WORDS.items() if word.startswith(start)), "")


def _judged(context: WorkerContext, minion: Any, pem: Any, state: str, *, replace: bool) -> tuple[str, str]:
    """What becomes of a key that is brought: stored, same, kept or refused; and why, or (stored) the state it had here."""
    if not is_minion_id(minion):
        return "refused", "no minion id of this master"
    try:
        PublicKey.from_pem(pem if isinstance(pem, str) else "")
    except PeerFault as error:
        return "refused", str(error)
    if context.store.minion_keys.pems(state, [minion]).get(minion) == clean_pem(pem):
        return "same", ""
    here = context.store.minion_keys.state_of(minion)
    if here is None or state == "denied" or here[0] == "denied":
        return "stored", ""
    same = clean_pem(here[1]) == clean_pem(pem)
    if replace or (same and here[0] == "pending"):
        return "stored", "" if same and state == "accepted" else here[0]
    return "kept", f"the same key is {here[0]} here" if same else f"another key is {here[0]} here"


def _moved(
    context: WorkerContext, found: Mapping[str, Sequence[str]], to: str, kwarg: Mapping[str, Any]
) -> dict[str, list[str]]:
    changed = _change(context, found, to, {"accepted": "accept", "rejected": "reject"}[to], kwarg)
    ids = list(dict.fromkeys(minion for minions in changed.values() for minion in minions))
    return {LISTS[to]: ids} if any(found.values()) else {}


def _change(
    context: WorkerContext, found: Mapping[str, Sequence[str]], to: str | None, act: str, kwarg: Mapping[str, Any]
) -> dict[str, list[str]]:
    """Moves or (``to`` None) deletes the keys of these ids in these states; the ids that were still in them."""
    changed: dict[str, list[str]] = {}
    store = context.store
    for state, ids in found.items():
        for minion, pem in store.minion_keys.pems(state, ids).items():
            if to is not None:
                store.minion_keys.store(minion, pem, to)
            else:
                store.minion_keys.delete(minion, state)
                if not kwarg.get("preserve_minions") and store.minion_keys.state_of(minion) is None:
                    store.cache.forget(minion)
                    store.presence.forget(minion)
            changed.setdefault(state, []).append(minion)
            context.fire(tags.KEY, {"result": True, "act": _ACTS[act], "id": minion, "pub": pem})
    # One rotation for all keys of one command: a minion that lost its key can read no further publication.
    if "accepted" in changed and to != "accepted":
        _rotate(context, kwarg)
    return changed


def _rotate(context: WorkerContext, kwarg: Mapping[str, Any]) -> None:
    wanted = kwarg.get("rotate_aes_key")
    if context.options.rotate_aes_key if wanted is None else wanted:
        context.store.epochs.rotate_aes()
        context.metrics.aes_rotations.inc()
        context.fire("key", {"rotate_aes_key": True})


def _found(context: WorkerContext, kwarg: Mapping[str, Any], states: Sequence[str]) -> dict[str, list[str]]:
    """Ids by state: those that match, or those that are named by their lists."""
    match = kwarg.get("match")
    if isinstance(match, Mapping):
        named = {STATES[name]: list(map(str, ids)) for name, ids in match.items()}
        return {state: named[state] for state in states if state in named}
    return _matching(context, kwarg, states)


def _matching(context: WorkerContext, kwarg: Mapping[str, Any], states: Sequence[str]) -> dict[str, list[str]]:
    wanted = _wanted(kwarg)
    everything = context.store.minion_keys.all()
    return {state: sorted(filter(wanted, everything.get(state, ())), key=str.lower) for state in states}


def _wanted(kwarg: Mapping[str, Any]) -> Callable[[str], bool]:
    """Whether ``match`` means an id."""
    match = kwarg.get("match", "*")
    if isinstance(match, str):
        patterns = [part.strip() for part in match.split(",") if part.strip()]
        return lambda minion: any(fnmatch.fnmatchcase(minion, pattern) for pattern in patterns)
    if isinstance(match, Sequence):
        # Names that somebody has found already, maybe thousands: one that looks like a glob stands for itself.
        return frozenset(map(str, match)).__contains__
    raise ControlError("InvocationError", f"match must be a glob or a list of ids, not {type(match).__name__}")


def _hash_type(context: WorkerContext, kwarg: Mapping[str, Any]) -> str:
    hash_type = str(kwarg.get("hash_type") or context.options.hash_type)
    # Of a shake one says how long it is to be, which hash_type cannot.
    known = sorted(name for name in hashlib.algorithms_guaranteed if not name.startswith("shake"))
    if hash_type not in known:
        raise ControlError("InvocationError", f"there is no hash_type '{hash_type}'; there are {', '.join(known)}")
    return hash_type


def _fingerprint(pem: str, hash_type: str) -> str:
    try:
        return PublicKey.from_pem(pem).fingerprint(hash_type)
    except PeerFault as error:
        return f"not a public key: {error}"
