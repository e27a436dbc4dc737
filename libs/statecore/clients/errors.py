"""Errors of Salt's clients, under Salt's names. Each message says what failed, where, why, and what to do next."""

from __future__ import annotations

from statecore.model.errors import StatecoreError


class SaltClientError(StatecoreError):
    """A request to the master failed."""


class SaltMasterError(StatecoreError):
    """The master had an error: its Redis does not answer, or it is too busy."""


class AuthenticationError(StatecoreError):
    """A key was not accepted: the master refuses the operator's key, or has another key than the expected one."""


class AuthorizationError(StatecoreError):
    """The user or the operator's key has no right to the request."""


class EauthAuthenticationError(StatecoreError):
    """External authentication (eauth) refused the user: a wrong password, or too many failed sign-ins."""


class TokenAuthenticationError(StatecoreError):
    """A user's token is unknown or has expired."""


class SaltReqTimeoutError(StatecoreError):
    """The master did not reply in time."""


class SaltConfigurationError(StatecoreError):
    """An option or a key file is missing, or an option has a wrong value."""
