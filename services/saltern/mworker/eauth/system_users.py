"""The eauth backend ``pam``: users of the worker's machine or container, by PAM. ``auth.pam.service`` names the service (login).

PAM also checks that the account is neither locked nor expired. ``pam_unix`` reads /etc/shadow, which only root may: a
worker in a container that runs as another user needs modules that do not (sssd, radius).
"""

from __future__ import annotations

import grp
import math
import os
import pwd
import time
from collections.abc import Mapping

from saltern.mworker.eauth.identity import EauthFault, Identity, missing


def check(settings: Mapping[str, object], user: str, password: str) -> Identity | None:
    """Check a user's password by PAM. Return the Identity with the user's system groups; None for a wrong password.
    Raises EauthFault if PAM cannot be used.

    A wrong password or an unknown user is answered at a whole number of seconds: PAM's modules need different times for
    the two, which would tell the names of users.
    """
    try:
        import pam
    except ImportError as error:
        raise missing("python-pam", "pam") from error
    try:
        began = time.monotonic()
        session = pam.PamAuthenticator()
        service = str(settings.get("auth.pam.service") or "login")
        if not session.authenticate(user, password, service=service, encoding="utf-8", resetcreds=False):
            taken = time.monotonic() - began
            time.sleep(math.ceil(taken) - taken)
            return None
    except OSError as error:
        raise EauthFault(f"PAM cannot be used: {error}") from error
    return Identity(user, groups_of(user))


def groups_of(user: str) -> tuple[str, ...]:
    """Return the names of a user's groups on this machine as a tuple; () for an unknown user."""
    try:
        numbers = os.getgrouplist(user, pwd.getpwnam(user).pw_gid)
    except KeyError:
        return ()
    names = {row.gr_gid: row.gr_name for row in grp.getgrall()}
    return tuple(names[number] for number in numbers if number in names)
