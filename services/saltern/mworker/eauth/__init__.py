"""External authentication: proves by a password or a bearer token who a user is. What the user may do, ``external_auth`` says.

A backend is a function ``(settings, user name, password)`` that returns an Identity, or None for a wrong password. It may take
seconds (a directory, a slow hash), so it runs in a child process of the worker. Libraries of backends are the extra ``eauth``
(``pip install saltern-services[eauth]``) and are imported only when a user signs in.
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
    """Return the Identity of any user whose password is the option ``sharedsecret``.

    It is for a front that has authenticated the user already and knows the secret.
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
    """Return the Identity of a user who knows the password; None for a wrong password or a user without one.

    ``settings``: the master's options by name, with ``auth.ldap.server`` and the like. Raises EauthFault if ``external_auth`` does
    not name the backend, or if the backend cannot check passwords.
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
