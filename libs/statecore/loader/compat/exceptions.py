"""``salt.exceptions`` for users' modules. Exceptions that Saltern raises itself are the same classes, under Salt's
names.
"""

from __future__ import annotations

from statecore.clients.errors import AuthenticationError as AuthenticationError
from statecore.clients.errors import AuthorizationError as AuthorizationError
from statecore.clients.errors import EauthAuthenticationError as EauthAuthenticationError
from statecore.clients.errors import SaltClientError as SaltClientError
from statecore.clients.errors import SaltConfigurationError as SaltConfigurationError
from statecore.clients.errors import SaltMasterError as SaltMasterError
from statecore.clients.errors import SaltReqTimeoutError as SaltReqTimeoutError
from statecore.clients.errors import TokenAuthenticationError as TokenAuthenticationError
from statecore.model.errors import CommandError, InvocationError, SlsError, StatecoreError, StateFailure

SaltException = StatecoreError
SaltInvocationError = InvocationError
CommandExecutionError = CommandError
SaltRenderError = SlsError
SaltStateFailure = StateFailure


class SaltNoMinionsFound(SaltException):
    """Salt's exception: no minion matches the target."""


class InvalidKeyError(SaltException, ValueError):
    """Salt's exception: a cryptographic key is malformed."""


class CommandNotFoundError(CommandExecutionError):
    """Salt's exception: a program that a function needs is not installed."""


class LoaderError(SaltException):
    """Salt's exception: a module could not be loaded."""


class PublishError(SaltException):
    """Salt's exception: a job could not be published to minions."""


class MinionError(CommandExecutionError):
    """Salt's exception: a file or service of the minion is not available."""


class FileserverConfigError(SaltException):
    """Salt's exception: the configuration of the fileserver (``file_roots``) is wrong."""


class FileLockError(SaltException):
    """Salt's exception: a lock on a file could not be acquired. ``time_start`` is the Unix time at which waiting began."""

    def __init__(self, message: str, time_start: float | None = None, *args: object) -> None:
        super().__init__(message, *args)
        self.time_start = time_start or 0.0


class GitLockError(SaltException):
    """Salt's exception: a lock on a git repository could not be acquired. ``errno`` is the number of the operating
    system's error.
    """

    def __init__(self, errno: int, message: str, *args: object) -> None:
        super().__init__(message, *args)
        self.errno = errno


class GitRemoteError(SaltException):
    """Salt's exception: a git remote could not be reached."""


class PkgParseError(CommandExecutionError):
    """Salt's exception: the output of the package manager could not be parsed."""


class SaltClientTimeout(SaltException):
    """Salt's exception: minions did not return in time. ``jid`` is the JID of the job, or None."""

    def __init__(self, message: str, jid: str | None = None, *args: object) -> None:
        super().__init__(message, *args)
        self.jid = jid


class SaltCacheError(SaltException):
    """Salt's exception: a cache could not be read or written."""


class TimedProcTimeoutError(CommandExecutionError):
    """Salt's exception: a command exceeded its time limit."""


class TimeoutError(CommandExecutionError):
    """Salt's exception: an operation exceeded its time limit."""


class SaltDeserializationError(SaltException):
    """Salt's exception: a text or bytes could not be parsed as data."""


class SaltValidationError(SaltException):
    """Salt's exception: data does not match its schema."""


class UnsupportedAlgorithm(SaltException):
    """Salt's exception: a cryptographic algorithm is unknown."""


class SaltDaemonNotRunning(SaltException):
    """Salt's exception: a daemon of Salt does not run."""


class SaltRunnerError(SaltException):
    """Salt's exception: a runner function failed."""


class SaltWheelError(SaltException):
    """Salt's exception: a wheel function failed."""


class SaltSystemExit(SystemExit):
    """Salt's exception that ends the process with the exit code ``code``, or prints ``msg`` and ends it with 1."""

    def __init__(self, code: int = 0, msg: str | None = None) -> None:
        super().__init__(msg or code)


class SaltCloudException(SaltException):
    """Salt's exception: a cloud provider failed."""


class SaltCloudSystemExit(SaltCloudException):
    """Salt's exception: a cloud module ends the command."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class SaltCloudConfigError(SaltCloudException):
    """Salt's exception: the configuration of a cloud module is wrong."""


class SaltCloudNotFound(SaltCloudException):
    """Salt's exception: a resource of a cloud provider does not exist."""


class SaltCloudExecutionTimeout(SaltCloudException):
    """Salt's exception: a cloud provider did not answer in time."""


class SaltCloudExecutionFailure(SaltCloudException):
    """Salt's exception: a cloud provider reported an error."""


class SaltCloudPasswordError(SaltCloudException):
    """Salt's exception: a password for a new virtual machine is wrong."""


class NotImplemented(SaltException):
    """Salt's exception: a function is not implemented."""


class TemplateError(SaltException):
    """Salt's exception: a template could not be rendered."""


class ArgumentValueError(CommandExecutionError):
    """Salt's exception: an argument has an invalid value."""


class CheckError(CommandExecutionError):
    """Salt's exception: a check of the system failed."""


class InvalidConfigError(CommandExecutionError):
    """Salt's exception: a configuration is invalid."""


class InvalidEntityError(CommandExecutionError):
    """Salt's exception: an object, such as an argument's value, failed a check."""


class LoggingRuntimeError(RuntimeError):
    """Salt's exception: logging could not be set up."""


def get_error_message(error: BaseException) -> str:
    """Return the first argument of an exception as text; "" if the exception has no arguments."""
    return str(error.args[0]) if error.args else ""
