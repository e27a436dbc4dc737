"""Salt's ``gpg`` states: keys in a user's keyring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError, InvocationError
from statecore.model.text_lines import lines_of
from statecore.model.types import Outcome, Plan, Step

#: Word of the argument ``trust`` -> the word in lists of keys.
_TRUST = {
    "expired": "Expired",
    "unknown": "Unknown",
    "not_trusted": "Not Trusted",
    "marginally": "Marginally Trusted",
    "fully": "Fully Trusted",
    "ultimately": "Ultimately Trusted",
}

_ERRORS = (CommandError, InvocationError, HostError)


def present(
    ctx: Context,
    name: str,
    keys: object = None,
    user: str | None = None,
    keyserver: str | None = None,
    gnupghome: str | None = None,
    trust: str | None = None,
    keyring: str | None = None,
    source: object = None,
    skip_keyserver: bool = False,
    text: str | None = None,
    subkey_maxage: int = 100,
) -> Plan:
    """Fetch public keys into a user's keyring if they are missing or expired, and set the trust in them. The state
    fails if a key cannot be fetched, or is still expired.

    keys
        long key id or list of them; default: ``name``
    keyserver
        key server to ask; default keys.openpgp.org
    source
        file of keys, or list of such files, to use if the key server does not have a key: ``salt://``, a path or a URL
    skip_keyserver
        True: use only ``source``
    text
        armored keys to use in place of key server and source
    trust
        expired, unknown, not_trusted, marginally, fully or ultimately
    subkey_maxage
        days: a key is fetched again if a subkey expired in these days; 0: never
    user, gnupghome, keyring
        the user's keys, gpg's home directory, a file of keys
    """
    if not text and skip_keyserver and not source:
        return Plan.failed("When skipping keyservers, you must provide at least one source")
    if trust and trust not in _TRUST:
        return Plan.failed(f"Invalid trust level {trust}")
    ring = _Ring(ctx, {"user": user, "gnupghome": gnupghome, "keyring": keyring}, int(subkey_maxage or 0))
    try:
        ring.look()
    except _ERRORS as error:
        return Plan.failed(str(error))
    origin = _Origin(keyserver, source, skip_keyserver, text)
    wanted = _names(keys, name)
    notes: dict[str, list[str]] = {key: [] for key in wanted}
    changes: dict[str, Any] = {}
    steps = []
    for key in wanted:
        why = ring.why_refresh(key)
        if key in ring.known and not why:
            notes[key].append(f"GPG Public Key {key} already in keychain")
        else:
            notes[key] += (
                [f"Would have added {key} to GPG keychain"] if key not in ring.known else ring.would_refresh(key)
            )
            changes.setdefault(key, {})["refresh" if why else "added"] = True
            steps.append((key, Step(f"fetch the key {key}", partial(ring.fetched, key, origin))))
        if not trust:
            continue
        if ring.trust_of(key) == _TRUST[trust]:
            notes[key].append(f"GPG Public Key {key} already in correct trust state")
        else:
            notes[key].append(f"Would have set trust level for {key} to {trust}")
            changes.setdefault(key, {})["trust"] = trust
            steps.append((key, Step(f"trust the key {key}", partial(ring.trusted, key, str(trust)))))
    comment = _comment(notes)
    if not steps:
        return Plan.unchanged(comment)
    return Plan.change(comment, [Step(f"manage the keys of {name}", lambda: ring.run(wanted, steps, notes))], changes)


def absent(
    ctx: Context,
    name: str,
    keys: object = None,
    user: str | None = None,
    gnupghome: str | None = None,
    keyring: str | None = None,
    keyring_absent_if_empty: bool = False,
) -> Plan:
    """Remove public keys from a user's keyring. Missing keys are ignored.

    keys
        long key id or list of them; default: ``name``
    keyring_absent_if_empty
        True: remove the file ``keyring`` when it has no key left
    user, gnupghome, keyring
        the user's keys, gpg's home directory, a file of keys
    """
    where = {"user": user, "gnupghome": gnupghome, "keyring": keyring}
    try:
        known = [key["keyid"] for key in ctx.call("gpg.list_keys", **where)]
    except _ERRORS as error:
        return Plan.failed(str(error))
    wanted = _names(keys, name)
    there = [key for key in wanted if key in known]
    lines = {key: f"{key} not found in GPG keychain" for key in wanted if key not in known}
    if not there:
        return Plan.unchanged("\n".join(lines.values()))

    def work() -> Outcome:
        done: dict[str, str] = {}
        deleted, good = [], True
        for key in there:
            answer = ctx.call("gpg.delete_key", keyid=key, **where)
            done[key] = f"Deleted {key} from GPG keychain" if answer["res"] else answer["message"]
            good = good and answer["res"]
            deleted += [key] if answer["res"] else []
        said = [(lines | done)[key] for key in wanted]
        changes: dict[str, object] = {"deleted": deleted} if deleted else {}
        if good and keyring and keyring_absent_if_empty and not ctx.call("gpg.list_keys", **where):
            ctx.host.path(keyring).unlink(missing_ok=True)
            said.append(f"Removed empty keyring file {keyring}")
            changes["removed"] = keyring
        return Outcome("\n".join(said), changes, ok=good)

    would = [lines.get(key, f"Would have deleted {key} from GPG keychain") for key in wanted]
    return Plan.change("\n".join(would), [Step(f"delete the keys {', '.join(there)}", work)], {"deleted": there})


# ----------------------------------------------------------------------------------------------------- parts


@dataclass(frozen=True, slots=True)
class _Origin:
    """The places from which ``gpg.present`` fetches keys: a key server, files, or a text."""

    keyserver: str | None
    source: object
    skip_keyserver: bool
    text: str | None

    @property
    def sources(self) -> list[str]:
        return [str(each) for each in (self.source if isinstance(self.source, list) else [self.source]) if each]


@dataclass(slots=True)
class _Ring:
    """The public keys of one user's keyring, and the work of ``gpg.present`` on them: fetch a key, set the trust in
    it.
    """

    ctx: Context
    where: Mapping[str, str | None]
    max_age: int
    known: dict[str, dict[str, Any]] = field(default_factory=dict)

    def look(self) -> None:
        """Read the user's keys into ``known``, a map of key id to key. Raise CommandError if gpg fails or the user does
        not exist.
        """
        self.known = {key["keyid"]: key for key in self.ctx.call("gpg.list_keys", **self.where)}

    def trust_of(self, key: str) -> str:
        return str(self.known.get(key, {}).get("trust", "Unknown"))

    def why_refresh(self, key: str) -> str:
        """Return "expired" or "subkeys" if a known key must be fetched again, else ""."""
        if self.known.get(key, {}).get("expired"):
            return "expired"
        return "subkeys" if _expired_subkeys(self.known.get(key, {}), self.max_age) else ""

    def would_refresh(self, key: str) -> list[str]:
        if self.why_refresh(key) == "expired":
            return [f"Would have attempted to update {key} because it is expired"]
        rows = _expired_subkeys(self.known[key], self.max_age).items()
        head = f"Would have attempted to update {key} because it has expired subkeys:"
        return [head, *(f"  - {subkey} (expired on {data['expires']})" for subkey, data in rows)]

    def run(self, wanted: list[str], steps: list[tuple[str, Step]], notes: Mapping[str, list[str]]) -> Outcome:
        """Run the steps of all keys, also after one that fails. Return one Outcome (comment, changes, success): failed
        if a step failed.

        ``steps`` has (key id, step). ``notes`` maps each key id to the comment lines that the plan made for it.
        """
        said = {
            key: [line for line in lines if not line.startswith(("Would ", "  - "))] for key, lines in notes.items()
        }
        changes: dict[str, Any] = {}
        good = True
        for key, step in steps:
            try:
                outcome = step.run()
            except _ERRORS as error:
                outcome = Outcome(str(error), ok=False)
                if why := self.why_refresh(key):
                    said[key].append(
                        "Existing key is expired, tried to fetch updated one"
                        if why == "expired"
                        else "Existing key has expired subkeys, tried to refresh"
                    )
            good = good and outcome.ok
            said[key] += lines_of(outcome.comment)
            for name, change in outcome.changes.items():
                changes.setdefault(name, {}).update(change)
        return Outcome(_comment({key: said[key] for key in wanted}), changes, ok=good)

    def fetched(self, key: str, origin: _Origin) -> Outcome:
        """Fetch one key into the keyring. Return an Outcome (comment, changes) that says whether the key was added,
        updated, or nothing new was found.

        Raise CommandError if no source has the key, or if it is expired there too.
        """
        old, why = self.known.get(key, {}), self.why_refresh(key)
        message = self._import(key, origin, refresh=bool(why))
        new = self.ctx.call("gpg.get_key", keyid=key, **self.where)
        if not new:
            raise CommandError(f"{message}\nThe new key {key} could not be retrieved though.")
        if new.get("expired"):
            raise CommandError(f"{message}\nThe new key {key} is expired though.")
        self.known[key] = new
        if not why:
            return Outcome(f"Added {key} to GPG keychain", {key: {"added": True}})
        if why == "expired":
            return Outcome(f"Updated {key} because it was expired", {key: {"refresh": True}})
        added = {each["keyid"] for each in new.get("subkeys", ())} - {each["keyid"] for each in old.get("subkeys", ())}
        left = _expired_subkeys(new, self.max_age)
        extended = set(_expired_subkeys(old, self.max_age)) - set(left)
        if not added and not extended:
            return Outcome(
                f"Attempted to update {key} because it has expired subkeys, but no new signatures or keys were found"
            )
        subkeys = {"added": sorted(added)} if added else {}
        subkeys |= {"extended": sorted(extended)} if extended else {}
        return Outcome(f"Updated {key} because it had expired subkeys.", {key: {"refresh": True, "subkeys": subkeys}})

    def trusted(self, key: str, trust: str) -> Outcome:
        """Set the trust in one key and return an Outcome (comment, changes); an empty one for a key that is not in the
        keyring. Raise CommandError if gpg refuses.
        """
        if key not in self.known:
            return Outcome("")
        answer = self.ctx.call("gpg.trust_key", keyid=key, trust_level=trust, **self.where)
        if not answer["res"]:
            raise CommandError(answer["message"])
        return Outcome(f"Set trust level for {key} to {trust}", {key: {"trust": trust}})

    def _import(self, key: str, origin: _Origin, *, refresh: bool) -> str:
        if origin.text:
            return self._from(key, {"text": origin.text}, refresh=refresh)
        tried = ""
        if not origin.skip_keyserver:
            answer = self.ctx.call("gpg.receive_keys", keyserver=origin.keyserver, keys=key, **self.where)
            tried = "\n".join(answer["message"])
            if answer["res"] and (not refresh or "updated: new" in tried or not origin.sources):
                return tried
        if not origin.sources:
            raise CommandError(tried)
        for each in origin.sources:
            text = self.ctx.call("cp.get_url", each, None)
            if not isinstance(text, str):
                continue
            try:
                return self._from(key, {"text": text}, refresh=refresh)
            except LookupError:
                continue
        raise CommandError(
            f"{tried}\nnone of the specified sources were found or contained the (unexpired) key {key}.".lstrip()
        )

    def _from(self, key: str, given: Mapping[str, str], *, refresh: bool) -> str:
        """Import one key from a text that contains keys, and return gpg's message. Raise CommandError if gpg refuses;
        an error that is also a LookupError if the text does not have the key.
        """
        where = {name: value for name, value in self.where.items() if name != "keyring"}
        found = self.ctx.call("gpg.read_key", **given, keyid=key, **where)
        if not found:
            raise _NotContained(f"Passed text did not contain the requested key {key}")
        if found[0].get("expired") and refresh:
            raise _NotContained(f"Passed text contained the key {key}, but it's expired")
        answer = self.ctx.call("gpg.import_key", **given, select=key, **self.where)
        if not answer["res"]:
            raise CommandError(answer["message"])
        return str(answer["message"])


class _NotContained(CommandError, LookupError):
    """Error: a text with keys does not contain the wanted key, or contains it expired."""


def _names(keys: object, name: str) -> list[str]:
    return [str(each) for each in (keys if isinstance(keys, list) else [keys or name])]


def _expired_subkeys(key: Mapping[str, Any], max_age: int) -> dict[str, dict[str, Any]]:
    """Map of subkey id to subkey, for those subkeys of a key that expired in the last ``max_age`` days; {} for 0
    days.
    """
    return {
        each["keyid"]: each
        for each in key.get("subkeys", ())
        if max_age and each.get("expired") and (date.today() - date.fromisoformat(each["expires"])).days <= max_age
    }


def _comment(notes: Mapping[str, list[str]]) -> str:
    return "\n".join(f"Key {key}:\n  * " + "\n  * ".join(lines) for key, lines in notes.items() if lines)
