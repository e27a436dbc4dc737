"""``salt.exceptions`` for users' modules: those that our own modules raise are these, under Salt's names."""

from __future__ import annotations

from statecore.model.errors import CommandError, InvocationError, SlsError, StatecoreError, StateFailure

SaltException = StatecoreError
SaltInvocationError = InvocationError
CommandExecutionError = CommandError
SaltRenderError = SlsError
SaltStateFailure = StateFailure


class SaltClientError(SaltException):
    """Something that was asked of the master failed."""


class SaltMasterError(SaltException):
    """The master failed."""


class SaltNoMinionsFound(SaltException):
    """No minion is meant by a target."""


class AuthenticationError(SaltException):
    """A key or token was not accepted."""


class AuthorizationError(SaltException):
    """Somebody may not do this."""


class EauthAuthenticationError(SaltException):
    """External authentication said no."""


class TokenAuthenticationError(SaltException):
    """A token was not accepted."""


class InvalidKeyError(SaltException, ValueError):
    """A key is not well formed."""


class CommandNotFoundError(CommandExecutionError):
    """A program that a function needs is not installed."""


class LoaderError(SaltException):
    """A module could not be loaded."""


class PublishError(SaltException):
    """A job could not be published."""


class MinionError(CommandExecutionError):
    """A file or service of the minion could not be had."""


class FileserverConfigError(SaltException):
    """The file roots are not usable."""


class FileLockError(SaltException):
    """A lock could not be had."""

    def __init__(self, message: str, time_start: float | None = None, *args: object) -> None:
        super().__init__(message, *args)
        self.time_start = time_start or 0.0


class GitLockError(SaltException):
    """A lock of a git repository could not be had."""

    def __init__(self, errno: int, message: str, *args: object) -> None:
        super().__init__(message, *args)
        self.errno = errno


class GitRemoteError(SaltException):
    """A git remote could not be asked."""


class PkgParseError(CommandExecutionError):
    """The package tool's output was not understood."""


class SaltClientTimeout(SaltException):
    """Minions did not answer in time."""

    def __init__(self, message: str, jid: str | None = None, *args: object) -> None:
        super().__init__(message, *args)
        self.jid = jid


class SaltCacheError(SaltException):
    """A cache could not be used."""


class TimedProcTimeoutError(CommandExecutionError):
    """A command ran longer than it may."""


class TimeoutError(CommandExecutionError):
    """Something took longer than it may."""


class SaltReqTimeoutError(SaltException):
    """The master did not answer."""


class SaltDeserializationError(SaltException):
    """Data could not be read."""


class SaltValidationError(SaltException):
    """Data is not what a schema says."""


class UnsupportedAlgorithm(SaltException):
    """An algorithm is not known."""


class SaltDaemonNotRunning(SaltException):
    """A daemon is not there."""


class SaltRunnerError(SaltException):
    """A runner failed."""


class SaltWheelError(SaltException):
    """A wheel function failed."""


class SaltConfigurationError(SaltException):
    """An option is missing or wrong."""


class SaltSystemExit(SystemExit):
    """The process is to end."""

    def __init__(self, code: int = 0, msg: str | None = None) -> None:
        super().__init__(msg or code)


class SaltCloudException(SaltException):
    """A cloud provider failed."""


class NotImplemented(SaltException):
    """Nobody wrote this."""


class TemplateError(SaltException):
    """A template could not be rendered."""


class ArgumentValueError(CommandExecutionError):
    """An argument has a value that it must not have."""


class CheckError(CommandExecutionError):
    """A check of the system failed."""


class InvalidConfigError(CommandExecutionError):
    """A configuration is wrong."""


class InvalidEntityError(CommandExecutionError):
    """An entity is not valid."""


class LoggingRuntimeError(RuntimeError):
    """The log could not be set up."""


def get_error_message(error: BaseException) -> str:
    """The first argument of an exception, as text."""
    return str(error.args[0]) if error.args else ""
