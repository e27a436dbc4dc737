"""Data that the stages of the state system exchange, and the plan that a native state function returns.

High data and low chunks are plain dicts with Salt's keys. Users see them in ``state.show_highstate``, and users'
modules receive them as ``__low__``, so statecore has no second form of them.

Source: docs/state-system.md#high-data
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

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
    """The four fields that identify a low chunk (one call of a Salt state): state module, state ID, name, function."""

    state: str
    id: str
    name: str
    fun: str

    @classmethod
    def of(cls, low: Mapping[str, Any]) -> ChunkId:
        """Return the ChunkId (state module, state ID, name, function) of a low chunk."""
        return cls(low["state"], low["__id__"], str(low["name"]), low["fun"])


def tag(low: Mapping[str, object]) -> str:
    """Return the key of a low chunk in the running dictionary: ``state_|-id_|-name_|-function``.

    Source: docs/state-system.md#tags
    """
    return f"{low['state']}{_SEPARATOR}{low['__id__']}{_SEPARATOR}{low['name']}{_SEPARATOR}{low['fun']}"


def untag(text: str) -> ChunkId:
    """Return the state module, state ID, name and function in a key of the running dictionary
    (``pkg_|-id_|-vim_|-installed``).

    Raises ValueError if the text is not such a key.
    """
    state, id_, name, fun = text.split(_SEPARATOR)
    return ChunkId(state, id_, name, fun)


class Outcome(NamedTuple):
    """Result of one applied step of a Salt state's plan: comment, changes, success."""

    #: One line for the state's comment; "" adds no line.
    comment: str = ""
    #: The changes made, merged into the state's changes in the order of the steps.
    changes: Mapping[str, Any] = MappingProxyType({})
    #: False: later steps do not run, and the state fails.
    ok: bool = True
    #: Key ``data`` of the state's return, for states that only query (``http.query``); None: no such key.
    data: Any = None


class FileChange(NamedTuple):
    """Content of one file of the managed host before and after a step of a Salt state's plan."""

    #: The host's absolute path.
    path: str
    #: None: the file does not exist.
    before: bytes | None
    after: bytes | None
    #: False: the content must not be shown (``show_changes: False``).
    shown: bool = True


class Step(NamedTuple):
    """One change of the managed host in a Salt state's plan: its description, and the function that makes the change."""

    #: Description in the imperative ("write /etc/motd"); plans and logs show it.
    what: str
    #: Makes the change. May raise StateFailure; any other exception is reported as the failure of the step.
    run: Callable[[], Outcome]
    #: The file that the step writes or removes, when its whole content is known; ``state.plan`` shows the difference.
    file: FileChange | None = None


class Plan(NamedTuple):
    """Result of a native state function: the steps that change the host. The engine applies them, or reports them in
    test mode.

    Without steps, ``result`` and ``comment`` are the state's result. With steps, test mode returns the result None with
    ``comment`` and ``changes`` as the prediction; a real run returns the comments and changes of the outcomes.
    """

    result: bool
    comment: str
    changes: Mapping[str, Any] = MappingProxyType({})
    steps: tuple[Step, ...] = ()
    #: Lines before the comments of the outcomes in a real run, and before ``comment`` in test mode.
    notes: tuple[str, ...] = ()
    #: Texts that outputters show as warnings.
    warnings: tuple[str, ...] = ()
    #: True: the changes trigger no requisite (key ``skip_req`` of the state's return).
    skip_req: bool = False
    #: Comment of a plan without steps in test mode, if Salt words it differently there; empty: ``comment``.
    in_test: str = ""

    @classmethod
    def unchanged(cls, comment: str, notes: Sequence[str] = (), *, in_test: str = "") -> Plan:
        """Return a Salt state's plan without steps: the host is already in the desired state."""
        return cls(result=True, comment=comment, notes=tuple(notes), in_test=in_test)

    @classmethod
    def failed(cls, comment: str, changes: Mapping[str, object] | None = None, *, in_test: str = "") -> Plan:
        """Return a Salt state's plan without steps that fails with ``comment``: the desired state cannot be reached."""
        return cls(result=False, comment=comment, changes=changes or {}, in_test=in_test)

    @classmethod
    def change(
        cls, would: str, steps: Sequence[Step], changes: Mapping[str, object] | None = None, notes: Sequence[str] = ()
    ) -> Plan:
        """Return a Salt state's plan with steps that change the host.

        ``would`` is the state's comment in test mode. ``changes`` are the predicted changes. ``notes`` are added to the
        comment.
        """
        return cls(result=True, comment=would, changes=changes or {}, steps=tuple(steps), notes=tuple(notes))
