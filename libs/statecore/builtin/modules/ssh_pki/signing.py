"""Functions of ``ssh_pki`` for signing policies, and for signing certificates of other minions."""

from __future__ import annotations

from statecore.builtin.modules.ssh_pki import signers
from statecore.model.context import Context
from statecore.model.errors import StatecoreError
from statecore.system.certificates import peers
from statecore.system.certificates.arguments import passphrase as password
from statecore.system.ssh_certificates import desired, keys, policies


def get_signing_policy(ctx: Context, signing_policy: str | None, ca_server: str | None = None) -> dict[str, object]:
    """Return a signing policy (``ssh_signing_policies`` of pillar or configuration) as a map, {} if there is none. With
    ``ca_server``, return the policy of that minion, with its public key in place of its private key.

    CLI Example:

        salt '*' ssh_pki.get_signing_policy www
    """
    if ca_server is None:
        return signers.policy_of(ctx, signing_policy)
    kept = ctx.scratch.setdefault("ssh_pki.policies", {})
    if (ca_server, signing_policy) not in kept:
        kept[ca_server, signing_policy] = signers.policy_of_peer(ctx, ca_server, signing_policy)
    return dict(kept[ca_server, signing_policy])


def sign_remote_certificate(
    ctx: Context,
    signing_policy: str,
    kwargs: dict[str, object],
    get_signing_policy_only: bool = False,
    **more_kwargs: object,
) -> dict[str, object]:
    """Sign a certificate for another minion by a signing policy. Return a map with ``data``, the certificate as bytes,
    and ``errors``.

    Other minions call this function through the master. The policy's ``minions`` selects those that may: a glob, or a
    compound target with ``@``. Whoever may call this function can get any certificate that a policy without ``minions``
    allows.
    """
    try:
        policy = signers.policy_of(ctx, signing_policy)
        peers.need_allowed(ctx, policy, more_kwargs.get("__pub_id"))
        policy.pop("minions", None)
        if get_signing_policy_only:
            return {"data": _open_part(ctx, policy), "errors": []}
        given = {name: value for name, value in kwargs.items() if name not in signers.SIGNERS and value is not None}
        peers.need_no_paths(given, "public_key")
        order = desired.certificate(signers.reader(ctx), policies.merged(policy, given))
        if order.signing_key is None:
            return peers.refused("there is no key to sign with")
        certificate = order.desired.signed(order.signing_key)
        signers.write_copy(ctx, certificate, policy.get("copypath"))
        return {"data": certificate.public_bytes(), "errors": []}
    except StatecoreError as error:
        return peers.refused(str(error))


def _open_part(ctx: Context, policy: dict[str, object]) -> dict[str, object]:
    """Return what another minion may see of a signing policy: the signer's public key in place of its private key."""
    found = {name: value for name, value in policy.items() if "private_key" not in name}
    if not policy.get("signing_private_key"):
        return found
    locked = password("signing_private_key_passphrase", policy.get("signing_private_key_passphrase"))
    key = keys.private_key(signers.reader(ctx)(policy["signing_private_key"]), locked)
    return found | {"signing_public_key": keys.encoded_public(key.public_key()).encode()}
