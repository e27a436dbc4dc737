"""The values that travel between the stages, and what a native state function returns.

High data and low chunks are plain dicts with Salt's keys (seeds 000 and 001): users see them through
``state.show_highstate`` and modules receive them as ``__low__``, so no second shape is invented for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from statecore.model.named_tuple import NamedTuple

#: ID declaration -> {state module: [argument, ..., function name], "__sls__": ref, "__env__": saltenv}.
High: TypeAlias = dict[str, Any]

#: One call of one state function: state, fun, name, __id__, __sls__, __env__, order, arguments, requisites.
Low: TypeAlias = dict[str, Any]

#: One entry of the running dictionary: name, result, changes, comment, __id__, __run_num__, start_time, duration.
RunningEntry: TypeAlias = dict[str, Any]

#: Tag string (``state_|-id_|-name_|-fun``) -> entry.
Running: TypeAlias = dict[str, RunningEntry]


_SEPARATOR = "_|-"


class ChunkId(NamedTuple):
    """What names a low chunk."""

    state: str
    id: str
    name: str
    fun: str

    @classmethod
    def of(cls, low: Mapping[str, Any]) -> ChunkId:
        """The identity of a low chunk."""
        return cls(low["state"], low["__id__"], str(low["name"]), low["fun"])


def tag(low: Mapping[str, Any]) -> str:
    """The running dictionary's key for a low chunk (seed 000): the only place where one is written."""
    return f"{low['state']}{_SEPARATOR}{low['__id__']}{_SEPARATOR}{low['name']}{_SEPARATOR}{low['fun']}"


def untag(text: str) -> ChunkId:
    """The four fields of a tag. Raises ValueError when it is not one."""
    state, id_, name, fun = text.split(_SEPARATOR)
    return ChunkId(state, id_, name, fun)


class Outcome(NamedTuple):
    """What one applied step really did."""

    #: One line for the state's comment; empty adds none.
    comment: str = ""
    #: Real changes, merged into the state's changes in step order.
    changes: Mapping[str, Any] = MappingProxyType({})
    #: False stops the plan: later steps do not run and the state fails.
    ok: bool = True
    #: What was found, for states that watch rather than change something (``http.query``): the entry's ``data``.
    data: Any = None


class FileChange(NamedTuple):
    """The content of one file of the host before and after a step."""

    #: The host's own path.
    path: str
    #: None: no such file.
    before: bytes | None
    after: bytes | None
    #: False: its author wants it shown to nobody (``show_changes: False``).
    shown: bool = True


class Step(NamedTuple):
    """One thing a plan would do to the host."""

    #: Imperative and concrete ("write /etc/motd"); shown by plans and logs.
    what: str
    #: Performs it. May raise StateFailure; any other exception is reported as the step's failure.
    run: Callable[[], Outcome]
    #: The file that it writes or removes, where the plan knows the whole content; what ``state.plan`` shows.
    file: FileChange | None = None


class Plan(NamedTuple):
    """What a native state function found (read) and would do (plan); the engine applies it, or reports it in test mode.

    With no steps ``result`` is the verdict and ``comment`` the reason. With steps, test mode gives result None with
    ``comment`` and ``changes`` as the prediction; applying gives the outcomes' comments and changes.
    """

    result: bool
    comment: str
    changes: Mapping[str, Any] = MappingProxyType({})
    steps: tuple[Step, ...] = ()
    #: Lines put before the outcomes' comments in a real run, and before ``comment`` in test mode.
    notes: tuple[str, ...] = ()
    #: What the outputters show as warnings.
    warnings: tuple[str, ...] = ()
    #: Its changes trigger no requisite (``skip_req`` of the entry).
    skip_req: bool = False

    @classmethod
    def unchanged(cls, comment: str, notes: Sequence[str] = ()) -> Plan:
        """The host is in the desired state already; ``comment`` says so."""
        return cls(result=True, comment=comment, notes=tuple(notes))

    @classmethod
    def failed(cls, comment: str, changes: Mapping[str, Any] | None = None) -> Plan:
        """The desired state cannot be reached; nothing was touched."""
        return cls(result=False, comment=comment, changes=changes or {})

    @classmethod
    def change(
        cls, would: str, steps: Sequence[Step], changes: Mapping[str, Any] | None = None, notes: Sequence[str] = ()
    ) -> Plan:
        """Something is to be done: ``would`` is test mode's comment, ``changes`` the prediction, ``steps`` the work."""
        return cls(result=True, comment=would, changes=changes or {}, steps=tuple(steps), notes=tuple(notes))
