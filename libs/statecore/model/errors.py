"""Every error statecore raises: what, where, why, and what to do next.

A fault of the user's tree is an ``SlsError`` with a place; a fault of a call is an ``InvocationError`` or a
``CommandError``; a state that cannot go on raises ``StateFailure``. Anything else escaping is a bug of ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from statecore.model.named_tuple import NamedTuple


class StatecoreError(Exception):
    """Base of all errors below."""

    @property
    def strerror(self) -> str:
        """The sentence; users' modules ask Salt's exceptions for it by this name, and by ``message``."""
        return str(self)

    @property
    def message(self) -> str:
        """The sentence."""
        return str(self)


class Mark(NamedTuple):
    """A place in a source file. Lines and columns count from 1; 0 means unknown."""

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
    """One thing wrong with a state tree, as shown under "Data failed to compile:".

    ``message`` keeps the wording users of Salt grep for; mark, excerpt and hint are what Salt does not say.
    """

    message: str
    mark: Mark | None = None
    sls: str = ""
    id: str = ""
    #: Source lines around the mark, the faulty one ending in Salt's arrow ``    <======================``.
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
    """A tree that does not render or compile. Carries every fault found, not the first."""

    def __init__(self, faults: Sequence[SlsFault]) -> None:
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults: tuple[SlsFault, ...] = tuple(faults)

    def lines(self) -> list[str]:
        """The list that Salt returns in place of a running dictionary."""
        return [str(fault) for fault in self.faults]


class InvocationError(StatecoreError, TypeError):
    """A function was called with arguments it does not take (Salt: SaltInvocationError)."""


class CommandError(StatecoreError):
    """An execution module could not do what it was asked (Salt: CommandExecutionError). ``info`` may carry structured detail, which
    is told behind the sentence (``error``), as Salt tells it."""

    def __init__(self, message: object = "", info: Any = None) -> None:
        super().__init__(str(message))
        self.error = str(message)
        self.info = info

    def __str__(self) -> str:
        return self._with(self.info)

    @property
    def strerror_without_changes(self) -> str:
        """The same without the key ``changes`` of the detail: a state has that beside its comment."""
        if not isinstance(self.info, Mapping):
            return str(self)
        return self._with({key: value for key, value in self.info.items() if key != "changes"})

    def _with(self, info: Any) -> str:
        if not info:
            return self.error
        sentence = self.error if self.error[-1:] in ("", ".", "?", "!") else f"{self.error}."
        return f"{sentence} Additional info follows:\n\n".lstrip(" ") + "\n".join(_lines(info, 0, "")).rstrip()


class TargetError(StatecoreError):
    """A target expression that cannot be understood."""


class NotAvailable(StatecoreError):
    """No such function, or its module says why it cannot work here. str() is Salt's "'x.y' is not available." plus reason."""

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
    """The managed host refused: permission, missing program, no such user. Names the path or program."""


@dataclass
class StateFailure(StatecoreError):
    """Raised inside a plan's step: the state fails with this comment, keeping the changes already made."""

    comment: str
    changes: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.comment


def _lines(data: Any, indent: int, prefix: str) -> Iterator[str]:
    """Data in the look of the outputter ``nested``, without colours."""
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
        for number, line in enumerate(data.splitlines()):
            yield f"{margin}{prefix if number == 0 else ' ' * len(prefix)}{line}"
    else:
        yield f"{margin}{prefix}{data!r}"
