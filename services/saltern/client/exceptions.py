"""What ``salt.exceptions`` is, for scripts: the errors that clients raise, under Salt's names."""

from __future__ import annotations

from statecore.clients.errors import AuthenticationError as AuthenticationError
from statecore.clients.errors import AuthorizationError as AuthorizationError
from statecore.clients.errors import EauthAuthenticationError as EauthAuthenticationError
from statecore.clients.errors import SaltClientError as SaltClientError
from statecore.clients.errors import SaltConfigurationError as SaltConfigurationError
from statecore.clients.errors import SaltMasterError as SaltMasterError
from statecore.clients.errors import SaltReqTimeoutError as SaltReqTimeoutError
from statecore.clients.errors import TokenAuthenticationError as TokenAuthenticationError
from statecore.model.errors import CommandError as CommandExecutionError
from statecore.model.errors import InvocationError as SaltInvocationError
from statecore.model.errors import StatecoreError as SaltException

__all__ = [
    "AuthenticationError",
    "AuthorizationError",
    "CommandExecutionError",
    "EauthAuthenticationError",
    "SaltClientError",
    "SaltConfigurationError",
    "SaltException",
    "SaltInvocationError",
    "SaltMasterError",
    "SaltReqTimeoutError",
    "TokenAuthenticationError",
]
