"""External authentication (eauth): checks by a password or a bearer token that a user is genuine. The option
``external_auth`` says what the user may do.

A backend is a function ``(settings, user name, password)`` that returns an Identity, or None for a wrong password. It
may take seconds (a directory, a slow hash), so it runs in a child process of the worker. Libraries of backends are the
extra ``eauth`` (``pip install saltern-services[eauth]``) and are imported only when a user signs in.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from typing import TypeAlias

from saltern.mworker.eauth import directory, oidc, password_files, system_users
from saltern.mworker.eauth.identity import EauthFault, Identity

#: (settings, user name, password) -> Identity, or None for a wrong password. Raises EauthFault if it cannot be checked.
Backend: TypeAlias = Callable[[Mapping[str, object], str, str], Identity | None]


def _shared_secret(settings: Mapping[str, object], user: str, password: str) -> Identity | None:
    """Return an Identity with the name ``user`` if the password equals the option ``sharedsecret``, else None. Raises
    EauthFault if the option is empty.

    It is for a program in front of the master that has authenticated the user already and knows the secret.
    """
    secret = str(settings.get("sharedsecret") or "")
    if not secret:
        raise EauthFault("the option sharedsecret is empty")
    return Identity(user) if hmac.compare_digest(secret.encode(), password.encode()) else None


#: Key of ``external_auth`` -> backend.
BACKENDS: Mapping[str, Backend] = {
    "file": password_files.check,
    "ldap": directory.check,
    "oidc": oidc.check,
    "pam": system_users.check,
    "sharedsecret": _shared_secret,
}


def check(settings: Mapping[str, object], backend: str, user: str, password: str) -> Identity | None:
    """Check a user's password with an eauth backend. Return the user's Identity; None for a wrong or empty password.

    ``settings``: the master's options by name, with ``auth.ldap.server`` and the like. Raises EauthFault if
    ``external_auth`` does not name the backend, or if the backend cannot check passwords.
    """
    external = settings.get("external_auth")
    if not isinstance(external, Mapping) or backend not in external:
        raise EauthFault(f"the option external_auth has no backend '{backend}'")
    function = BACKENDS.get(backend)
    if function is None:
        raise EauthFault(f"the backend '{backend}' is not here; there are {', '.join(sorted(BACKENDS))}")
    # Directories take an empty password for an anonymous sign-in, which succeeds. Only a bearer token names its user itself.
    if not password or "\0" in password or "\0" in user or (not user and backend != "oidc"):
        return None
    return function(settings, user, password)
