"""X.509 signing policies: merge the fixed settings of a certificate authority with the arguments of a caller."""

from __future__ import annotations

from collections.abc import Mapping

from statecore.model.errors import InvocationError
from statecore.system.certificates import extensions, names

#: Arguments of Salt's older x509 module that have no effect any more.
FORMER: frozenset[str] = frozenset({"text", "version", "serial_bits", "verbose", "cipher"})


def short(given: Mapping[str, object]) -> dict[str, object]:
    """Return the map of an ``x509`` function's arguments with short names (``CN``) as keys.

    ``algorithm`` is renamed to ``digest``. Arguments that have no effect any more (``FORMER``) are left out.
    """
    found: dict[str, object] = {}
    for name, value in given.items():
        if name in FORMER:
            continue
        name = names.LONG_NAMES.get(name) or extensions.LONG_NAMES.get(name) or name
        found["digest" if name == "algorithm" else name] = value
    return found


def as_map(policy: object, name: str) -> dict[str, object]:
    """Return a signing policy from configuration or pillar as one map. ``policy`` is a map, or a list of maps that are
    merged.

    Raises InvocationError for any other value.
    """
    given = policy if isinstance(policy, list) else [policy or {}]
    rows = [row for row in given if isinstance(row, Mapping)]
    if len(rows) < len(given):
        raise InvocationError(f"the signing policy '{name}' is a map, or a list of maps, not {policy!r}")
    return {key: value for row in rows for key, value in row.items()}


def read(policy: object, name: str) -> dict[str, object]:
    """Return a signing policy of ``x509`` as one map, with short names. Raise InvocationError if it has another form."""
    return short(as_map(policy, name))


def merged(policy: Mapping[str, object], given: Mapping[str, object]) -> dict[str, object]:
    """Return the effective arguments of a certificate: those of the signing policy, and those of the caller that the
    policy leaves open.

    If the policy fixes parts of the subject, the caller's ``subject`` is ignored. If both have a map or list as
    subject, they are joined; the policy's part comes first. The policy's option ``minions`` is not part of the result.
    """
    fixed, asked = dict(policy), short(given)
    if not fixed:
        return asked
    fixed.pop("minions", None)
    if "subject" in asked:
        own, theirs = fixed.get("subject"), asked["subject"]
        if any(name in fixed for name in names.ATTRIBUTES):
            del asked["subject"]
        elif isinstance(own, Mapping) and isinstance(theirs, Mapping):
            fixed["subject"] = {**theirs, **own}
        elif isinstance(own, list) and isinstance(theirs, list):
            fixed["subject"] = own + theirs
    return asked | fixed
