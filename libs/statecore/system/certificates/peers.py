"""Signing policies of a minion that signs for others, and the requests to it: shared by the modules ``x509`` and
``ssh_pki``. The master's option ``peer`` must allow the requests.
"""

from __future__ import annotations

from collections.abc import Mapping

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.system.certificates import references

#: Seconds to wait for the signing minion's return.
_TIMEOUT = 60


def configured_policy(ctx: Context, option: str, name: str | None) -> object:
    """Return a signing policy of this minion as it is written in the option's map, from the pillar, else from the
    configuration; {} if there is none.
    """
    if name is None:
        return {}
    for ask, more in (("pillar.get", {"unmask": True}), ("config.get", {})):
        found = ctx.call(ask, option, {}, **more)
        if isinstance(found, Mapping) and found.get(name):
            return found[name]
    return {}


def request_signing(
    ctx: Context, function: str, ca_server: str, policy: str | None, given: Mapping[str, object], *, only_policy: bool
) -> object:
    """Call a function such as ``x509.sign_remote_certificate`` on another minion and return the ``data`` of its result.

    Raise InvocationError without a policy, CommandError if that minion refuses or does not answer.
    """
    if not policy:
        raise InvocationError("signing_policy must be specified to request a certificate from a remote ca_server")
    arguments = [policy, dict(given), only_policy]
    answer = ctx.call("publish.publish", ca_server, function, arg=arguments, timeout=_TIMEOUT)
    if not answer:
        raise CommandError(
            "ca_server did not respond. Salt master must permit peers to call the sign_remote_certificate function."
        )
    returned = next(iter(answer.values())) if isinstance(answer, Mapping) else None
    if not isinstance(returned, Mapping) or "data" not in returned:
        raise CommandError(f"Received invalid return value from ca_server: {str(returned)[:200]}")
    if returned.get("errors"):
        raise CommandError("ca_server reported errors:\n" + "\n".join(map(str, returned["errors"])))
    return returned["data"]


def need_allowed(ctx: Context, policy: Mapping[str, object], asking: object) -> None:
    """Raise CommandError if there is no signing policy, or if its ``minions`` (a glob, or a compound target with
    ``@``) do not include the minion that asks. ``asking``: its id, None if unknown.
    """
    if not policy:
        raise CommandError("signing_policy must be specified and defined on signing minion")
    if "minions" not in policy:
        return
    if asking is None:
        raise CommandError("minion sending this request could not be identified")
    if not _is_meant(ctx, str(policy["minions"]), str(asking)):
        raise CommandError("minion not permitted to use specified signing policy")


def refused(why: str) -> dict[str, object]:
    """Return the map with which ``sign_remote_certificate`` refuses."""
    return {"data": None, "errors": [why]}


def need_no_paths(given: Mapping[str, object], *names: str) -> None:
    """Raise InvocationError if one of these arguments of a certificate request is a path, because it would be a path on
    the signing minion.
    """
    for name in names:
        if references.is_path(given.get(name)):
            raise InvocationError(f"{name}: give the content, not a path: the path would be read on the ca_server")


def _is_meant(ctx: Context, target: str, minion: str) -> bool:
    if "@" not in target:
        return bool(ctx.call("match.glob", target, minion))
    answer = ctx.call("publish.runner", "match.compound_matches", arg=[target, minion])
    if not isinstance(answer, dict) or "res" not in answer:
        raise CommandError(
            "Could not check minion match for compound expression. "
            "Is this minion allowed to run `match.compound_matches` on the master?"
        )
    return bool(answer["res"] == minion)
