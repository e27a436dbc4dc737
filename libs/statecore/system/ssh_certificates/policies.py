"""Signing policies of OpenSSH certificates: merge the settings of a certificate authority with the arguments of a caller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from statecore.model.errors import InvocationError
from statecore.system.certificates import names
from statecore.system.ssh_certificates.desired import seconds

#: Parts of a policy that only say which values a caller may choose.
_LIMITS: tuple[str, ...] = (
    *("minions", "allowed_critical_options", "default_critical_options", "allowed_extensions", "default_extensions"),
    *("allowed_valid_principals", "default_valid_principals", "max_ttl", "copypath"),
)


def merged(policy: Mapping[str, object], given: Mapping[str, object]) -> dict[str, object]:
    """Return the effective arguments of a certificate: those of the signing policy, and those of the caller that the
    policy allows. The limits themselves and ``copypath`` are not part of the result.
    """
    if not policy:
        return dict(given)
    found = dict(given)
    for name in ("critical_options", "extensions"):
        found[name] = _options(name, policy, given)
    found |= _principals(policy, given)
    found |= _validity(policy, given)
    closed = {"critical_options", "extensions", "valid_principals", "ttl", *_LIMITS}
    return found | {name: value for name, value in policy.items() if name not in closed}


def _options(name: str, policy: Mapping[str, object], given: Mapping[str, object]) -> dict[str, object]:
    """Return critical options or extensions: the policy's defaults, the caller's that are allowed, the policy's own."""
    allowed = _listed(f"allowed_{name}", policy.get(f"allowed_{name}", ["*"]))
    asked = _map(name, given.get(name))
    chosen = {key: value for key, value in asked.items() if "*" in allowed or key in allowed}
    return {**_map(f"default_{name}", policy.get(f"default_{name}")), **chosen, **_map(name, policy.get(name))}


def _principals(policy: Mapping[str, object], given: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments about principals if the policy limits them: the caller's that are allowed, else the policy's
    default.
    """
    limit = policy.get("allowed_valid_principals", policy.get("valid_principals"))
    if limit is None:
        return {}
    allowed = _listed("allowed_valid_principals", limit)
    usual = policy.get("default_valid_principals", allowed)
    if asked := _listed("valid_principals", given.get("valid_principals")):
        return {"valid_principals": [each for each in asked if each in allowed] or usual, "all_principals": None}
    return {"valid_principals": allowed if given.get("all_principals") else usual, "all_principals": None}


def _validity(policy: Mapping[str, object], given: Mapping[str, object]) -> dict[str, object]:
    """Return not_before, not_after and ttl: the caller's, but not longer than the policy's ``max_ttl``."""
    usual = seconds("ttl", policy.get("ttl"))
    longest = seconds("max_ttl", policy["max_ttl"]) if "max_ttl" in policy else usual
    asked = seconds("ttl", given.get("ttl"))
    after = names.moment("not_before", given["not_before"]) if given.get("not_before") else datetime.now(UTC)
    if given.get("not_after"):
        asked = (names.moment("not_after", given["not_after"]) - after).total_seconds()
    if asked is None:
        asked = longest if usual is None else usual
    elif longest is not None:
        asked = min(asked, longest)
    if asked is None:
        return {}
    try:
        before = after + timedelta(seconds=asked)
    except OverflowError as error:
        raise InvocationError(f"ttl: {asked} seconds are too long") from error
    return {
        "not_before": after.strftime(names.TIME_FORMAT),
        "not_after": before.strftime(names.TIME_FORMAT),
        "ttl": asked,
    }


def _map(name: str, value: object) -> Mapping[str, object]:
    if not isinstance(value or {}, Mapping):
        raise InvocationError(f"{name} is a map, not {value!r}")
    return value or {}  # type: ignore[return-value]


def _listed(name: str, value: object) -> list[object]:
    if isinstance(value, str):
        return [value]
    given = value or []
    if not isinstance(given, Iterable):
        raise InvocationError(f"{name} is a list, not {value!r}")
    return list(given)
