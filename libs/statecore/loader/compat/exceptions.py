"""``salt.exceptions`` for users' modules: the same classes that our own modules raise, under Salt's names."""

from __future__ import annotations

from statecore.errors import CommandError, InvocationError, SlsError, StatecoreError, StateFailure

SaltException = StatecoreError
SaltInvocationError = InvocationError
CommandExecutionError = CommandError
SaltRenderError = SlsError
SaltStateFailure = StateFailure


class CommandNotFoundError(CommandExecutionError):
    """A program that a function needs is not installed."""


class MinionError(CommandExecutionError):
    """A file or service of the minion could not be had."""


class FileserverConfigError(SaltException):
    """The file roots are not usable."""


class LoaderError(SaltException):
    """A module could not be loaded."""


class PkgParseError(CommandExecutionError):
    """The package tool's output was not understood."""


class TimedProcTimeoutError(CommandExecutionError):
    """A command ran longer than it may."""


class TimeoutError(CommandExecutionError):
    """Something took longer than it may."""


class ArgumentValueError(InvocationError):
    """An argument has a value that it must not have."""


class CheckError(SaltException):
    """A check of the system failed."""


class SaltConfigurationError(SaltException):
    """An option is missing or wrong."""


class SaltReqTimeoutError(SaltException):
    """The master did not answer."""
