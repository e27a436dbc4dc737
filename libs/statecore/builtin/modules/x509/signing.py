"""Functions of ``x509`` for signing policies, and for signing certificates of other minions."""

from __future__ import annotations

from cryptography.hazmat.primitives import serialization

from statecore.builtin.modules.x509 import signers
from statecore.builtin.modules.x509.host_files import reader
from statecore.model.context import Context
from statecore.model.errors import StatecoreError
from statecore.system.certificates import arguments, loading, peers, policies


def get_signing_policy(ctx: Context, signing_policy: str | None, ca_server: str | None = None) -> dict[str, object]:
    """Return a signing policy (``x509_signing_policies`` of pillar or configuration) as a map, {} if there is none.
    With ``ca_server``, return the policy of that minion without its keys.

    CLI Example:

        salt '*' x509.get_signing_policy www
    """
    if ca_server is None:
        return signers.policy_of(ctx, signing_policy)
    kept = ctx.scratch.setdefault("x509.policies", {})
    if (ca_server, signing_policy) not in kept:
        policy = signers.request_signing(ctx, ca_server, signing_policy, {}, only_policy=True)
        kept[ca_server, signing_policy] = _with_pem(ctx, policies.read(policy, str(signing_policy)))
    return dict(kept[ca_server, signing_policy])


def sign_remote_certificate(
    ctx: Context,
    signing_policy: str,
    kwargs: dict[str, object],
    get_signing_policy_only: bool = False,
    **more_kwargs: object,
) -> dict[str, object]:
    """Sign a certificate for another minion by a signing policy. Return a map with ``data``, the certificate in DER,
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
            open_part = {name: value for name, value in policy.items() if "private_key" not in name}
            return {"data": _with_pem(ctx, open_part), "errors": []}
        given = {name: value for name, value in policies.short(kwargs).items() if name not in signers.SIGNERS}
        peers.need_no_paths(given, "public_key", "csr")
        order = arguments.certificate(reader(ctx), policies.merged(policy, given))
        if order.signing_key is None:
            return peers.refused("there is no key to sign with")
        certificate = order.desired.signed(order.signing_key, order.digest)
        signers.write_copy(ctx, certificate, policy)
        return {"data": certificate.public_bytes(serialization.Encoding.DER), "errors": []}
    except StatecoreError as error:
        return peers.refused(str(error))


def _with_pem(ctx: Context, policy: dict[str, object]) -> dict[str, object]:
    """Return a signing policy (a map) with the signer's certificate as PEM text in place of its path."""
    if "signing_cert" not in policy:
        return policy
    certificate = loading.certificate(reader(ctx)(policy["signing_cert"])).certificate
    return policy | {"signing_cert": certificate.public_bytes(serialization.Encoding.PEM).decode()}
