"""The eauth backend ``oidc``: the password is a bearer token (a signed JWT) of an OpenID Connect provider.

Settings: ``auth.oidc.issuer`` and ``auth.oidc.audience`` (both needed), ``auth.oidc.jwks_uri`` (default: as the issuer's discovery
document says) or ``auth.oidc.jwks_file``, ``auth.oidc.user_claim`` (preferred_username), ``auth.oidc.groups_claim`` (groups).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path

from saltern.mworker.eauth.identity import EauthFault, Identity, missing

_LOG = logging.getLogger("saltern.mworker.eauth")

#: Signatures by the provider's private key. Algorithms with a shared secret, and "none", are never accepted.
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")

#: Seconds by which clocks may differ; seconds to wait for the provider.
_LEEWAY = 30
_PATIENCE = 10.0

#: Largest answer of a provider, bytes.
_MOST = 1024 * 1024


def check(settings: Mapping[str, object], user: str, password: str) -> Identity | None:
    """Check a bearer token (the password) of an OpenID Connect provider. Return the Identity that the token proves;
    None for a token that is wrong, expired, or for another audience or user.

    ``user``: name that the token must have; empty: any. Raises EauthFault if the provider's keys cannot be read or an
    option is missing.
    """
    try:
        import jwt
    except ImportError as error:
        raise missing("PyJWT[crypto]", "oidc") from error
    issuer, audience = (str(settings.get(f"auth.oidc.{name}") or "") for name in ("issuer", "audience"))
    if not issuer or not audience:
        raise EauthFault("the backend 'oidc' needs the options auth.oidc.issuer and auth.oidc.audience")
    keys = jwt.PyJWKSet.from_dict(_key_set(settings, issuer))
    try:
        key_id = jwt.get_unverified_header(password).get("kid")
        key = next((one for one in keys.keys if key_id is None or one.key_id == key_id), None)
        if key is None or (key_id is None and len(keys.keys) > 1):
            _LOG.info("a bearer token was refused: its key %r is none of %s", key_id, issuer)
            return None
        claims = jwt.decode(
            password,
            key,
            algorithms=list(_ALGORITHMS),
            audience=audience,
            issuer=issuer,
            leeway=_LEEWAY,
            options={"require": ["exp", "iss", "aud"]},
        )
    except jwt.PyJWTError as error:
        # The error of PyJWT names the claim, never the token.
        _LOG.info("a bearer token was refused: %s", error)
        return None
    name = claims.get(str(settings.get("auth.oidc.user_claim") or "preferred_username"))
    if not isinstance(name, str) or not name or (user and user != name):
        return None
    groups = claims.get(str(settings.get("auth.oidc.groups_claim") or "groups"))
    return Identity(name, tuple(map(str, groups)) if isinstance(groups, list) else ())


def _key_set(settings: Mapping[str, object], issuer: str) -> dict[str, object]:
    """Return the public keys of the OpenID Connect provider as a map (JSON Web Key Set), from ``auth.oidc.jwks_file``
    or over HTTP. Raises EauthFault if they cannot be read.
    """
    path, uri = settings.get("auth.oidc.jwks_file"), settings.get("auth.oidc.jwks_uri")
    try:
        if path:
            found = json.loads(Path(str(path)).read_bytes())
        else:
            address = uri or _fetched(f"{issuer.rstrip('/')}/.well-known/openid-configuration")["jwks_uri"]
            found = _fetched(str(address))
    except (OSError, ValueError, KeyError) as error:
        raise EauthFault(f"the keys of {issuer} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise EauthFault(f"the keys of {issuer} are no JSON Web Key Set")
    return found


def _fetched(address: str) -> dict[str, object]:
    if not address.startswith(("https://", "http://")):
        raise ValueError(f"{address}: not an address of the web")
    # Only here: the module takes two megabytes of each worker.
    import urllib.request

    with urllib.request.urlopen(address, timeout=_PATIENCE) as answer:
        found = json.loads(answer.read(_MOST))
    if not isinstance(found, dict):
        raise ValueError(f"{address}: not a JSON object")
    return found
