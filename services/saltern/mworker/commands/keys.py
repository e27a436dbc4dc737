"""Minion keys: the wheel functions ``key.*``, and a minion's request to revoke its own key.

Names, arguments and results are Salt's (Salt: salt/wheel/key.py); ``key.import`` is Saltern's own.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from masterstore.minion_keys import STATES as STATE_ORDER
from saltern.kit.links.control import ControlError
from saltern.mworker.senders import Sender
from saltern.mworker.worker_context import WorkerContext
from saltwire import tags
from saltwire.errors import PeerFault
from saltwire.ids import is_minion_id
from saltwire.keys import PrivateKey, PublicKey, canonical_pem
from statecore.model.errors import TargetError
from statecore.targeting.match import glob_pattern

#: Map of state in the store to the list name in Salt's answers.
LISTS: Mapping[str, str] = {
    "pending": "minions_pre",
    "rejected": "minions_rejected",
    "accepted": "minions",
    "denied": "minions_denied",
}

#: Map of list name to state.
STATES: Mapping[str, str] = {name: state for state, name in LISTS.items()}

Wheel: TypeAlias = Callable[[WorkerContext, Mapping[str, object]], object]


def call(context: WorkerContext, fun: str, kwarg: Mapping[str, object]) -> object:
    """Call the wheel function ``fun`` for minion keys and return its value.

    Raises ControlError if a function that changes keys gets no ``match``.
    """
    if fun in _CHANGES and "match" not in kwarg:
        raise ControlError("InvocationError", f"{fun} changes keys: name them with match ('*' for all)")
    return WHEELS[fun](context, kwarg)


def revoke_own(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> object:
    """Delete the minion's own key and return True. If ``allow_minion_key_revoke`` is off, return the load unchanged, as
    Salt does.

    With ``preserve_minion_cache`` the master keeps the minion's grains, pillar and mine.
    """
    if not context.options.allow_minion_key_revoke:
        return dict(load)
    context.audit.record("revoke", minion_id)
    _change(context, {"accepted": [minion_id]}, None, "delete", {"preserve_minions": load.get("preserve_minion_cache")})
    return True


def known(context: WorkerContext, sender: Sender, fields: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """Return {minion id: {"key": state of its key or "", "age": seconds since its last request or None}} of the given
    ``minions``.
    """
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


def list_all(context: WorkerContext, kwarg: Mapping[str, object]) -> dict[str, list[str]]:
    """Return all minion ids by the state of their key: {name of the key list: ids}."""
    everything = context.store.minion_keys.all()
    return {name: sorted(everything.get(state, ()), key=str.lower) for state, name in LISTS.items()}


def list_one(context: WorkerContext, kwarg: Mapping[str, object]) -> dict[str, list[str]]:
    """Return {name of the key list: ids} for one state of keys. Raises ControlError for an unknown state.

    ``match`` begins with acc, pre, un, rej or den; ``all`` returns every state.
    """
    word = str(kwarg.get("match", ""))
    everything = list_all(context, kwarg)
    if word.startswith("all"):
        return everything
    name = list_named(word)
    if not name:
        raise ControlError("InvocationError", f"'{word}' names no list of keys: acc, pre, un, rej, den or all")
    return {name: everything[name]}


def list_match(context: WorkerContext, kwarg: Mapping[str, object]) -> dict[str, list[str]]:
    """Return the minion ids that ``match`` matches, by the state of their key; states without ids are left out.

    ``match`` is a glob, several globs with commas, or a list of ids.
    """
    return {LISTS[state]: ids for state, ids in _matching(context, kwarg, tuple(LISTS)).items() if ids}


def finger(context: WorkerContext, kwarg: Mapping[str, object]) -> dict[str, dict[str, str]]:
    """Return the fingerprints of matching minion keys by state of the key: {name of the key list: {minion id: fingerprint}}.

    The master's own key is added under ``local`` if ``match`` matches ``master.pub``.
    """
    hash_type = _hash_type(context, kwarg)
    answer = {
        name: {minion: _fingerprint(pem, hash_type) for minion, pem in pems.items()}
        for name, pems in key_str(context, kwarg).items()
    }
    if _wanted(kwarg)("master.pub"):
        answer |= finger_master(context, kwarg)
    return answer


def finger_master(context: WorkerContext, kwarg: Mapping[str, object]) -> dict[str, dict[str, str]]:
    """Return the fingerprint of the master's own key: {"local": {"master.pub": fingerprint}}."""
    return {"local": {"master.pub": context.keys.private.public.fingerprint(_hash_type(context, kwarg))}}


def key_str(context: WorkerContext, kwarg: Mapping[str, object]) -> dict[str, dict[str, str]]:
    """Return the public keys, as PEM text, of the minions whose id matches the argument ``match``: {name of the key
    list: {minion id: PEM}}.
    """
    found = _matching(context, kwarg, tuple(LISTS))
    return {LISTS[state]: context.store.minion_keys.pems(state, ids) for state, ids in found.items() if ids}


def master_key_str(context: WorkerContext, kwarg: Mapping[str, object]) -> dict[str, dict[str, str]]:
    """Return the master's own public key: {"local": {"master.pub": PEM}}."""
    return {"local": {"master.pub": context.keys.private.public.pem}}


def master_keys(context: WorkerContext, kwarg: Mapping[str, object]) -> dict[str, object]:
    """Return which of the master's keys the accepted minions know, while the master's key is replaced.

    ``newest`` and ``previous`` are fingerprints of the master's keys; ``previous`` is "" if no key is being replaced.
    ``pem`` is the newest public key. ``minions`` maps the id of each accepted minion to a map: ``own`` (True for a
    Saltern minion, False for stock Salt), ``told`` (the minion has signed in since the key was replaced), ``newest``
    (it accepts the newest key) and ``age`` (seconds since its last request, None if it never sent one).
    """
    keys, store = context.keys, context.store
    accepted = sorted(store.minion_keys.ids("accepted"))
    known, own, now = store.master_keys.all(), store.master_keys.own_minions(accepted), time.time()
    valid = {key.public.fingerprint() for key in keys.all}
    seen, newest = store.presence.last_seen(accepted), keys.private.public.fingerprint()
    return {
        "newest": newest,
        "previous": keys.previous.public.fingerprint() if keys.previous else "",
        "pem": keys.private.public.pem,
        "minions": {
            minion: {
                "own": minion in own,
                "told": known.get(minion) in valid,
                "newest": keys.previous is None or known.get(minion) == newest,
                "age": max(0.0, now - seen[minion] / 1000) if minion in seen else None,
            }
            for minion in accepted
        },
    }


def note_master_key(context: WorkerContext, kwarg: Mapping[str, object]) -> dict[str, list[str]]:
    """Record that the minions in ``match`` (a list of ids) accept the master's newest key. Returns {"minions": ids}.

    `saltern rotate master` calls it after it has written that key to stock minions.
    """
    accepted = set(context.store.minion_keys.ids("accepted"))
    given = kwarg.get("match")
    ids = sorted(accepted & {str(one) for one in given}) if isinstance(given, list) else []
    for minion in ids:
        context.store.master_keys.set(minion, context.keys.private.public.fingerprint())
    return {"minions": ids}


def renew_publication_key(context: WorkerContext, kwarg: Mapping[str, object]) -> dict[str, int]:
    """Replace the key that encrypts publications: each minion signs in anew when it gets the next job.

    Returns {"epoch": number of the key}.
    """
    epoch = context.store.epochs.rotate_aes()
    context.fire("key", {"rotate_aes_key": True})
    return {"epoch": epoch}


def accept(context: WorkerContext, kwarg: Mapping[str, object]) -> dict[str, list[str]]:
    """Accept the pending keys that ``match`` matches; with ``include_rejected`` and ``include_denied`` also rejected
    and denied ones. Returns {"minions": changed minion ids}, {} if no key matches.

    An accepted denied key replaces the key that the minion id had before.
    """
    states = ["pending"] + [s for s in ("rejected", "denied") if kwarg.get(f"include_{s}")]
    return _moved(context, _found(context, kwarg, states), "accepted", kwarg)


def reject(context: WorkerContext, kwarg: Mapping[str, object]) -> dict[str, list[str]]:
    """Reject the pending keys that ``match`` matches; with ``include_accepted`` and ``include_denied`` also accepted
    and denied ones. Returns {"minions_rejected": changed minion ids}, {} if no key matches.
    """
    states = ["pending"] + [s for s in ("denied", "accepted") if kwarg.get(f"include_{s}")]
    return _moved(context, _found(context, kwarg, states), "rejected", kwarg)


def delete(context: WorkerContext, kwarg: Mapping[str, object]) -> dict[str, list[str]]:
    """Delete the keys that ``match`` matches, in every state. Returns {list name of the former state: deleted minion
    ids}.

    ``rotate_aes_key: False`` keeps the publication key although a minion lost access. ``preserve_minions: True`` keeps
    the grains, pillar and mine of the deleted minions.
    """
    changed = _change(context, _found(context, kwarg, tuple(LISTS)), None, "delete", kwarg)
    return {LISTS[state]: ids for state, ids in changed.items() if ids}


def bring(context: WorkerContext, kwarg: Mapping[str, object]) -> dict[str, object]:
    """Import minion keys from another master: ``keys`` is {list name: {minion id: PEM}}; ``replace`` overwrites
    different keys.

    Returns ``stored`` ({list name: ids}), ``same`` (ids with an equal key), and with a reason for each id ``kept``
    (another key is stored here) and ``refused`` (invalid id or key). Importing the same keys twice changes nothing. A
    key that is pending here and accepted in the import becomes accepted.
    """
    given = kwarg.get("keys")
    if not isinstance(given, Mapping) or not all(isinstance(pems, Mapping) for pems in given.values()):
        raise ControlError("InvocationError", "keys must be a map of lists (minions, minions_pre, ...), each id: PEM")
    if unknown := sorted(set(given) - set(STATES)):
        raise ControlError("InvocationError", f"there is no list {', '.join(map(str, unknown))}: {', '.join(STATES)}")
    stored: dict[str, list[str]] = {}
    same: list[str] = []
    reasons: dict[str, dict[str, str]] = {"kept": {}, "refused": {}}
    lost_access = False
    for name, pems in given.items():
        for minion, pem in pems.items():
            verdict, why = _judged(context, minion, pem, STATES[name], replace=bool(kwarg.get("replace")))
            if verdict == "same":
                same.append(minion)
            elif verdict != "stored":
                reasons[verdict][str(minion)] = why
            else:
                lost_access = lost_access or why == "accepted"
                context.store.minion_keys.store(minion, canonical_pem(pem), STATES[name])
                stored.setdefault(name, []).append(minion)
                context.fire(
                    tags.KEY, {"result": True, "act": _IMPORTED[name], "id": minion, "pub": canonical_pem(pem)}
                )
    if lost_access:
        _rotate(context, kwarg)
    return {"stored": stored, "same": same, **reasons}


def generate(context: WorkerContext, kwarg: Mapping[str, object]) -> dict[str, str]:
    """Return a new key pair as {"priv", "pub"}; the master does not store it. ``keysize`` is in bits (default: the option)."""
    bits = kwarg.get("keysize", max(_SMALLEST, context.options.keysize))
    if not isinstance(bits, int) or not _SMALLEST <= bits <= _LARGEST:
        raise ControlError("InvocationError", f"keysize must be {_SMALLEST} to {_LARGEST} bits, not {bits!r}")
    private = PrivateKey.generate(bits)
    return {"priv": private.to_pem().decode(), "pub": private.public.pem + "\n"}


def generate_accepted(context: WorkerContext, kwarg: Mapping[str, object]) -> dict[str, str]:
    """Make a key pair, store its public key as accepted for ``id_``, and return {"priv", "pub"}.

    Return {} if the id has a key and ``force`` is not set.
    """
    minion = kwarg.get("id_")
    if not is_minion_id(minion):
        raise ControlError("InvocationError", f"{minion!r} is no minion id: name it with id_")
    made = generate(context, kwarg)
    brought = bring(context, {"keys": {"minions": {minion: made["pub"]}}, "replace": bool(kwarg.get("force"))})
    return made if brought["stored"] else {}


def _by_name(function: Wheel) -> Wheel:
    """Return ``function``, a wheel function for keys, wrapped by a check: it raises ControlError unless ``match`` is
    {list name: ids}.
    """

    def run(context: WorkerContext, kwarg: Mapping[str, object]) -> object:
        match = kwarg.get("match")
        lists = match if isinstance(match, Mapping) else {"": None}
        if not all(name in STATES and isinstance(ids, list) for name, ids in lists.items()):
            raise ControlError("InvocationError", f"match must be a map of lists ({', '.join(STATES)}) to ids")
        return function(context, kwarg)

    return run


#: Map of wheel function to its implementation.
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
    "key.master_keys": master_keys,
    "key.note_master_key": note_master_key,
    "key.renew_publication_key": renew_publication_key,
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

#: Functions that change keys; they require ``match``.
_CHANGES = frozenset(f"key.{verb}{kind}" for verb in ("accept", "reject", "delete") for kind in ("", "_dict"))

#: Map of the first letters of a state's word to the list name.
_WORDS: Mapping[str, str] = {
    "acc": "minions",
    "pre": "minions_pre",
    "un": "minions_pre",
    "rej": "minions_rejected",
    "den": "minions_denied",
}

#: Maps of a change, and of the list of an imported key, to ``act`` of the ``salt/key`` event.
_ACTS: Mapping[str, str] = {"accept": "accept", "reject": "reject", "delete": "delete"}
_IMPORTED: Mapping[str, str] = {
    "minions": "accept",
    "minions_pre": "pend",
    "minions_rejected": "reject",
    "minions_denied": "denied",
}

#: Smallest and largest key that ``key.gen`` makes, bits.
_SMALLEST, _LARGEST = 2048, 16384


def list_named(word: str) -> str:
    """Return the name of the key list that a word means (acc, accepted, pre, un, ...); empty text if it means none."""
    return next((name for start, name in _WORDS.items() if word.startswith(start)), "")


def _judged(context: WorkerContext, minion: object, pem: object, state: str, *, replace: bool) -> tuple[str, str]:
    """Return (result of importing a minion key, its reason). The result is stored, same, kept or refused.

    For ``stored`` the second value is the state of the key that is replaced, or empty text.
    """
    text = pem if isinstance(pem, str) else ""
    if not isinstance(minion, str) or not is_minion_id(minion):
        return "refused", "no minion id of this master"
    try:
        PublicKey.from_pem(text)
    except PeerFault as error:
        return "refused", str(error)
    if context.store.minion_keys.pems(state, [minion]).get(minion) == canonical_pem(text):
        return "same", ""
    here = context.store.minion_keys.state_of(minion)
    if here is None or state == "denied" or here[0] == "denied":
        return "stored", ""
    same = canonical_pem(here[1]) == canonical_pem(text)
    if replace or (same and here[0] == "pending"):
        return "stored", "" if same and state == "accepted" else here[0]
    return "kept", f"the same key is {here[0]} here" if same else f"another key is {here[0]} here"


def _moved(
    context: WorkerContext, found: Mapping[str, Sequence[str]], to: str, kwarg: Mapping[str, object]
) -> dict[str, list[str]]:
    changed = _change(context, found, to, {"accepted": "accept", "rejected": "reject"}[to], kwarg)
    ids = list(dict.fromkeys(minion for minions in changed.values() for minion in minions))
    return {LISTS[to]: ids} if any(found.values()) else {}


def _change(
    context: WorkerContext, found: Mapping[str, Sequence[str]], to: str | None, act: str, kwarg: Mapping[str, object]
) -> dict[str, list[str]]:
    """Move the keys of minions ({key state: minion ids}) to the state ``to``, or delete them if ``to`` is None.

    Return {former key state: changed minion ids}.
    """
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
    # One rotation for all keys of a command, so that minions without access cannot read further publications.
    if "accepted" in changed and to != "accepted":
        _rotate(context, kwarg)
    return changed


def _rotate(context: WorkerContext, kwarg: Mapping[str, object]) -> None:
    wanted = kwarg.get("rotate_aes_key")
    if context.options.rotate_aes_key if wanted is None else wanted:
        context.store.epochs.rotate_aes()
        context.metrics.aes_rotations.inc()
        context.fire("key", {"rotate_aes_key": True})


def _found(context: WorkerContext, kwarg: Mapping[str, object], states: Sequence[str]) -> dict[str, list[str]]:
    """Return {key state: minion ids} for the argument ``match`` of a wheel function, limited to these states."""
    match = kwarg.get("match")
    if isinstance(match, Mapping):
        named = {STATES[name]: list(map(str, ids)) for name, ids in match.items()}
        return {state: named[state] for state in states if state in named}
    return _matching(context, kwarg, states)


def _matching(context: WorkerContext, kwarg: Mapping[str, object], states: Sequence[str]) -> dict[str, list[str]]:
    wanted = _wanted(kwarg)
    everything = context.store.minion_keys.all()
    return {state: sorted(filter(wanted, everything.get(state, ())), key=str.lower) for state in states}


def _wanted(kwarg: Mapping[str, object]) -> Callable[[str], bool]:
    """Return a function from minion id to True or False, made from the argument ``match`` of a wheel function: a glob,
    several globs with commas, or a list of ids. Raises ControlError for another type.
    """
    match = kwarg.get("match", "*")
    if isinstance(match, str):
        patterns = [part.strip() for part in match.split(",") if part.strip()]
        try:
            globs = [glob_pattern(pattern) for pattern in patterns]
        except TargetError as error:
            raise ControlError("InvocationError", f"match: {error}") from error
        return lambda minion: any(glob.match(minion) is not None for glob in globs)
    if isinstance(match, Sequence):
        # A list contains exact ids; one that looks like a glob is no glob.
        return frozenset(map(str, match)).__contains__
    raise ControlError("InvocationError", f"match must be a glob or a list of ids, not {type(match).__name__}")


def _hash_type(context: WorkerContext, kwarg: Mapping[str, object]) -> str:
    hash_type = str(kwarg.get("hash_type") or context.options.hash_type)
    # Digests of variable length (shake) cannot be used: hash_type does not give a length.
    known = sorted(name for name in hashlib.algorithms_guaranteed if not name.startswith("shake"))
    if hash_type not in known:
        raise ControlError("InvocationError", f"there is no hash_type '{hash_type}'; there are {', '.join(known)}")
    return hash_type


def _fingerprint(pem: str, hash_type: str) -> str:
    try:
        return PublicKey.from_pem(pem).fingerprint(hash_type)
    except PeerFault as error:
        return f"not a public key: {error}"
