"""Every error that statecore raises.

``SlsError`` is a fault in the user's state tree and has its file and line. ``InvocationError`` and ``CommandError``
are faults of a call. ``StateFailure`` ends a state function. Any other exception is a bug in statecore. Each message
says what failed, where, why, and what to do next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from statecore.model.text_lines import lines_of


class StatecoreError(Exception):
    """Base class of all errors of statecore."""

    @property
    def strerror(self) -> str:
        """The message, under the name that users' modules read from Salt's exceptions."""
        return str(self)

    @property
    def message(self) -> str:
        """The message, under the second name that users' modules read from Salt's exceptions."""
        return str(self)


class Mark(NamedTuple):
    """A position in a source file: file name, line and column. Lines and columns count from 1; 0 means unknown."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        place = self.file
        if self.line:
            place += f":{self.line}"
            if self.column:
                place += f":{self.column}"
        return place


class SlsFault(NamedTuple):
    """One error in a state tree (an SLS that does not render or compile), as shown under "Data failed to compile:".

    ``message`` is Salt's own text, which users search for. Salt has no ``mark``, ``excerpt`` and ``hint``.
    """

    message: str
    mark: Mark | None = None
    sls: str = ""
    id: str = ""
    #: Source lines around the mark. The faulty line ends in Salt's arrow ``    <======================``.
    excerpt: str = ""
    hint: str = ""

    def __str__(self) -> str:
        text = self.message
        if self.mark is not None:
            text += f"\n    at {self.mark}"
        if self.excerpt:
            text += f"\n\n---\n{self.excerpt}\n---"
        if self.hint:
            text += f"\n    {self.hint}"
        return text


class SlsError(StatecoreError):
    """A state tree does not render or compile. ``faults`` has every fault that was found, not only the first."""

    def __init__(self, faults: Sequence[SlsFault]) -> None:
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults: tuple[SlsFault, ...] = tuple(faults)

    def lines(self) -> list[str]:
        """Return the errors of the state tree as a list of texts. Salt returns this list in place of a running
        dictionary.
        """
        return [str(fault) for fault in self.faults]


class InvocationError(StatecoreError, TypeError):
    """A function was called with arguments that it does not accept (Salt: SaltInvocationError)."""


class CommandError(StatecoreError):
    """An execution module failed to do its work (Salt: CommandExecutionError).

    ``error`` is the message. ``info`` may be structured detail; ``str()`` shows the detail below the message, as Salt
    does.
    """

    def __init__(self, message: object = "", info: object = None) -> None:
        super().__init__(str(message))
        self.error = str(message)
        self.info = info

    def __str__(self) -> str:
        return self._with(self.info)

    @property
    def strerror_without_changes(self) -> str:
        """The error message and its structured detail as text, without the detail's key ``changes``.

        A state that fails returns its changes in a field of its own, so its comment need not repeat them.
        """
        if not isinstance(self.info, Mapping):
            return str(self)
        return self._with({key: value for key, value in self.info.items() if key != "changes"})

    def _with(self, info: object) -> str:
        if not info:
            return self.error
        sentence = self.error if self.error[-1:] in ("", ".", "?", "!") else f"{self.error}."
        return f"{sentence} Additional info follows:\n\n".lstrip(" ") + nested_text(info)


class CallFailed(CommandError):
    """An execution function failed where Salt's function returns a value, such as False, and does not raise.

    States and built-in modules get this error, because it says why the call failed. Templates, users' modules, guards
    and jobs get ``value``, which is Salt's (``salted`` in ``statecore.model.failed_calls``).
    """

    def __init__(self, message: object = "", value: object = False) -> None:
        super().__init__(message)
        self.value = value


class TargetError(StatecoreError):
    """A target expression has a syntax error, or names an unknown target type or node group."""


class NotAvailable(StatecoreError):
    """A function does not exist, or its module refused to load. ``str()`` is Salt's "'x.y' is not available." plus
    the reason.
    """

    def __init__(self, name: str, reason: str = "", hint: str = "") -> None:
        text = f"'{name}' is not available."
        if reason:
            text += f" Reason: {reason}"
        if hint:
            text += f" {hint}"
        super().__init__(text)
        self.name = name
        self.reason = reason


class HostError(CommandError):
    """The managed host refused an operation: no permission, a missing program, an unknown user. The message names
    the object.
    """


@dataclass
class StateFailure(StatecoreError):
    """Exception that makes a Salt state fail while it applies its changes.

    The state returns ``comment``. Its ``changes`` are those of this exception and those made before it was raised.
    """

    comment: str
    changes: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.comment


def nested_text(data: object) -> str:
    """Return data as the outputter ``nested`` shows it, without colours and without a line end."""
    return "\n".join(_lines(data, 0, "")).rstrip()


def _lines(data: object, indent: int, prefix: str) -> Iterator[str]:

    margin = " " * indent
    if isinstance(data, Mapping):
        if indent:
            yield f"{margin}----------"
        for key in sorted(data, key=str):
            yield f"{margin}{prefix}{key}:"
            yield from _lines(data[key], indent + 4, "")
    elif isinstance(data, list | tuple):
        for item in data:
            if isinstance(item, Mapping | list | tuple):
                yield f"{margin}|_"
                yield from _lines(item, indent + 2, "" if isinstance(item, Mapping) else "- ")
            else:
                yield from _lines(item, indent, "- ")
    elif isinstance(data, str):
        for number, line in enumerate(lines_of(data)):
            yield f"{margin}{prefix if number == 0 else ' ' * len(prefix)}{line}"
    else:
        yield f"{margin}{prefix}{data!r}"


def place_in_module(error: BaseException) -> str:
    """Return the position where a user's module raised an exception, as text " (/path/of/module.py:12)"; "" if no
    user's module was called.

    The loader gives each user's module the global name ``__salt__``; built-in modules have none.
    """
    place, trace = "", error.__traceback__
    while trace is not None:
        if "__salt__" in trace.tb_frame.f_globals:
            place = f" ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})"
        trace = trace.tb_next
    return place


class DataFault(Exception):
    """Error: a rendered text cannot be parsed as data (YAML, JSON ...).

    ``line`` and ``column`` of the error count from 1 in the parsed text; 0 means unknown. ``earlier`` is the line that
    the error conflicts with (the first of two equal keys), or 0.
    """

    def __init__(self, message: str, line: int, column: int = 0, earlier: int = 0) -> None:
        super().__init__(message)
        self.line = line
        self.column = column
        self.earlier = earlier
