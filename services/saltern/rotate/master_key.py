"""Replaces the master's key, by which minions know the master. Both keys are valid until all minions know the new one.

1. ``master.previous.pem`` holds the old key, ``master.pem`` the new one. Publishers sign each job with both; workers sign an
   answer with the key that the minion knows. Saltern's minions learn the new key from an answer that the old key signed.
2. The key of publications is replaced, so each minion signs in again. A job writes the new key to a file of stock minions.
3. ``master.previous.pem`` is removed: the old key is no longer the master's.

Source: docs/protocol.md#replaced-master-key
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict, cast

from saltern.kit.keys.keygen import SPEAK_TO_MINIONS
from saltern.kit.keys.master_keys import PREVIOUS, PRIVATE
from saltern.kit.links.control import ControlClient
from saltern.rotate.key_files import KeyFiles, RotationError, tell
from saltwire.errors import OwnFault
from saltwire.keys import PrivateKey
from statecore.model.text_lines import lines_of

#: Seconds between two looks at which minions know the new key.
_LOOK = 0.5

#: Seconds between two jobs for minions that did not sign in yet, at least, and for each minion.
_AGAIN, _AGAIN_EACH = 5.0, 0.01

#: Seconds for which nothing but the new key may be seen, so that every worker and publisher has it.
_SETTLED = 2.0

#: Seconds for the workers to take new keys, beside the time in which the files reach them.
_TAKEN = 30.0

#: Seconds that a job for stock minions may take.
_JOB = 30.0

#: Seconds since its last request after which a minion counts as away.
_AWAY = 600.0


class KnownKey(TypedDict):
    """One minion in the answer of the wheel function ``key.master_keys``: its kind, and whether it knows the newest
    key.

    ``own``: it is a Saltern minion, not stock Salt. ``told``: it has signed in since the master's key was replaced.
    ``newest``: it accepts the newest key. ``age``: seconds since its last request; None: never.
    """

    own: bool
    told: bool
    newest: bool
    age: float | None


class MasterKeysAnswer(TypedDict):
    """The answer of the wheel function ``key.master_keys``: fingerprints of the master's keys, and {minion id: KnownKey}.

    ``previous`` is empty if no key is replaced now; ``pem`` is the newest public key.
    """

    newest: str
    previous: str
    pem: str
    minions: dict[str, KnownKey]


@dataclass(frozen=True)
class _Master:
    """Sends the requests of a rotation to the master's port 4507: wheel functions, and jobs for minions."""

    control: ControlClient

    def state(self) -> MasterKeysAnswer:
        return cast("MasterKeysAnswer", self.control.call("wheel", fun="key.master_keys", kwarg={}))

    def wheel(self, fun: str, **kwarg: object) -> object:
        return self.control.call("wheel", fun=fun, kwarg=kwarg)

    def publish(self, minions: Sequence[str], fun: str, *arg: object) -> str:
        job = self.control.call(
            "publish", tgt=list(minions), tgt_type="list", fun=fun, arg=list(arg), request_id=os.urandom(16).hex()
        )
        return job["jid"] or ""

    def returns(self, jid: str, minions: Sequence[str]) -> dict[str, object]:
        """Return {minion id: return value} of the job ``jid``; wait at most 30 seconds until all ``minions`` have
        returned. Without a JID return {}.
        """
        deadline = time.monotonic() + _JOB
        found: dict[str, object] = {}
        while jid and len(found) < len(minions) and time.monotonic() < deadline:
            answers = self.control.call("job_returns", jid=jid)
            found = {name: value.get("return") for name, value in answers.items()}
            time.sleep(_LOOK / 2)
        return found


def rotate_master_key(files: KeyFiles, control: ControlClient, *, keysize: int, patience: float, force: bool) -> None:
    """Replace the master's RSA key. ``patience``: seconds to wait until minions know the new key.

    If some minions do not know it after that time, both keys stay valid and the ids of these minions are printed. With
    ``force`` the old key is removed nevertheless. Raises RotationError, OSError, ControlError, ControlTimeout.
    """
    master = _Master(control)
    new = _begin(files, keysize)
    files.bring()
    _await_workers(master, new, replaced=True)
    missing = _teach(master, patience)
    if missing and not force:
        tell(
            f"master: both keys are valid. {len(missing)} minions do not know the new key yet: {_listed(missing)}. "
            "They are served as before. Run this command again when they have been here, or with --force to give them up"
        )
        return
    for role in SPEAK_TO_MINIONS:
        files.remove(f"{role}/{PREVIOUS}")
    files.bring()
    _await_workers(master, new, replaced=False)
    # Each minion then signs in, and forgets the old key.
    master.wheel("key.renew_publication_key")
    tell(f"master: the key is {new.public.fingerprint()}; the old one is not the master's any more")
    if missing:
        tell(f"master: these minions refuse the master until minion_master.pub is removed there: {_listed(missing)}")


def _begin(files: KeyFiles, keysize: int) -> PrivateKey:
    """Carry out step 1 of the replacement of the master's key: write the old and the new key into the roles'
    directories, or continue an interrupted rotation. Return the new key.

    Raises RotationError, OSError.
    """
    pems = {role: files.directory / role / PRIVATE for role in SPEAK_TO_MINIONS}
    try:
        held = {role: PrivateKey.from_pem(files.read(f"{role}/{PRIVATE}")) for role in SPEAK_TO_MINIONS}
    except OSError as error:
        raise RotationError(
            f"{error.filename}: {error.strerror}; --keys names the directory of `saltern keygen --out`"
        ) from error
    except OwnFault as error:
        raise RotationError(f"{' or '.join(map(str, pems.values()))}: {error}") from error
    before = [f"{role}/{PREVIOUS}" for role in SPEAK_TO_MINIONS]
    if all(map(files.exists, before)) and len({key.public.pem for key in held.values()}) == 1:
        tell("master: two keys are valid already; the rotation goes on")
        return held[SPEAK_TO_MINIONS[0]]
    # Interrupted between two files: the first role's old key counts, and the new one that some role has.
    kept = next((name for name in before if files.exists(name)), f"{SPEAK_TO_MINIONS[0]}/{PRIVATE}")
    old = files.read(kept)
    old_pem = PrivateKey.from_pem(old).public.pem
    new = next((key for key in held.values() if key.public.pem != old_pem), None) or PrivateKey.generate(keysize)
    # The old key first everywhere: nobody is without it at any moment.
    for role in SPEAK_TO_MINIONS:
        files.write(f"{role}/{PREVIOUS}", old)
    for role in SPEAK_TO_MINIONS:
        files.write(f"{role}/master.pub", (new.public.pem + "\n").encode())
        files.write(f"{role}/{PRIVATE}", new.to_pem())
    tell(f"master: the new key is {new.public.fingerprint()}; the old one is valid beside it")
    return new


def _await_workers(master: _Master, new: PrivateKey, *, replaced: bool) -> None:
    """Wait until all workers that answer have the new key, and still have the old one if ``replaced``.

    Raises RotationError if they do not have these keys in time.
    """
    deadline, since = time.monotonic() + _TAKEN, time.monotonic()
    wanted = new.public.fingerprint()
    while time.monotonic() < since + _SETTLED:
        state = master.state()
        if state["newest"] != wanted or bool(state["previous"]) is not replaced:
            since = time.monotonic()
            if since > deadline:
                raise RotationError(
                    "a worker has other keys than the files: do the changed files reach every publisher and mworker "
                    "(--apply, --wait)? Both keys stay valid; run this command again"
                )
        time.sleep(_LOOK / 4)


def _teach(master: _Master, patience: float) -> list[str]:
    """Carry out step 2 of the replacement of the master's key: make minions learn the new key. Return the accepted
    minions that do not know it after ``patience`` seconds.

    Minions that are away for longer are not waited for. The key of publications is replaced only twice: a minion with
    a backlog cannot decrypt jobs of an earlier key, and signs in for each of them. The answer to the first sign-in
    names the new key to the minion; the second sign-in shows that the minion knows it.
    """
    deadline, again, written, told = time.monotonic() + patience, 0.0, set[str](), False
    # A minion that went away a moment ago does not keep the others from showing what they know.
    half = time.monotonic() + patience / 2
    master.wheel("key.renew_publication_key")
    while True:
        missing = _missing(master.state()["minions"])
        present = [name for name, minion in missing.items() if minion["age"] is not None and minion["age"] < _AWAY]
        if not present or time.monotonic() > deadline:
            return sorted(missing)
        if time.monotonic() >= again:
            stock = [name for name in present if not missing[name]["own"] and name not in written]
            # A stock minion that checks the master by a signing key has taken the new key with its first sign-in.
            if again and stock:
                written |= _write_to_stock(master, stock)
            # The next job cannot be decrypted before a sign-in.
            master.publish(present, "test.ping")
            again = time.monotonic() + max(_AGAIN, _AGAIN_EACH * len(present))
        heard = all(missing[name]["told"] for name in present if missing[name]["own"])
        if not told and (heard or time.monotonic() > half):
            told, again = True, 0.0
            master.wheel("key.renew_publication_key")
        time.sleep(_LOOK)


def _missing(minions: Mapping[str, KnownKey]) -> dict[str, KnownKey]:
    return {name: minion for name, minion in minions.items() if not minion["newest"]}


def _write_to_stock(master: _Master, minions: Sequence[str]) -> set[str]:
    """Write the master's newest key into the files of stock minions by jobs. Return the ids of the minions that wrote it.

    Stock minions read the file whenever they check a signature.
    """
    pem = master.state()["pem"]
    places = master.returns(master.publish(minions, "config.get", "pki_dir"), minions)
    done: set[str] = set()
    for pki_dir, ids in _by_place(places):
        arg = [f"{pki_dir}/minion_master.pub", *lines_of(pem)]
        found = master.returns(master.publish(ids, "file.write", *arg), ids)
        wrote = [name for name, said in found.items() if isinstance(said, str) and said.startswith("Wrote")]
        # From now on these minions check what the master signs with the new key.
        master.wheel("key.note_master_key", match=wrote)
        done |= set(wrote)
    if done:
        tell(f"master: {len(done)} stock minions got the new key as a file")
    return done


def _by_place(places: Mapping[str, object]) -> Iterator[tuple[str, list[str]]]:
    named = {name: place for name, place in places.items() if isinstance(place, str) and place.startswith("/")}
    for place in sorted(set(named.values())):
        yield place.rstrip("/"), sorted(name for name, one in named.items() if one == place)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
