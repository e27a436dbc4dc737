"""The objects of the renderer ``pyobjects``: state functions as Python calls, whose states become high data.

An SLS calls ``File.managed("/etc/motd", mode="0644")``; the call adds a state to the Registry of the running rendering.
``salt.utils.pyobjects`` gives the same objects to users' code, which therefore must find that Registry without an
argument: ``RENDERING`` holds it for the thread that renders.

Salt: salt/utils/pyobjects.py.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple, NoReturn

log = logging.getLogger(__name__)

#: Arguments whose single value becomes a list, and whose StateRequisites become maps.
REQUISITES = tuple(
    f"{name}{end}" for end in ("", "_in") for name in ("listen", "onchanges", "onfail", "require", "watch", "use")
)


class StateException(Exception):
    """Base class of the errors of pyobjects."""


class DuplicateState(StateException):
    """Error: an SLS declares the same state function twice under one ID."""


class InvalidFunction(StateException):
    """Error: the state module does not have the function."""


class Registry:
    """The states, includes and extends that one SLS has declared so far."""

    def __init__(self) -> None:
        #: ID -> "module.function" -> argument list.
        self.states: dict[str, dict[str, list[Any]]] = {}
        self.extends: dict[str, dict[str, list[Any]]] = {}
        self.includes: list[object] = []
        #: Requisites of the ``with`` blocks that are open, the outermost first.
        self.requisites: list[StateRequisite] = []
        #: False while imported files run: their states are not declared.
        self.enabled = True

    def empty(self) -> None:
        """Forget all states, includes, extends and requisites."""
        self.states, self.extends, self.includes, self.requisites = {}, {}, [], []

    def include(self, *slses: object) -> None:
        """Declare includes of the SLS."""
        if self.enabled:
            self.includes += slses

    def salt_data(self) -> dict[str, Any]:
        """Return the declared high data and forget it."""
        data: dict[str, Any] = dict(self.states)
        if self.includes:
            data["include"] = self.includes
        if self.extends:
            data["extend"] = self.extends
        self.empty()
        return data

    def add(self, id_: str, state: State, extend: bool = False) -> None:
        """Declare a state, with the requisites of the open ``with`` blocks. Raise DuplicateState.

        ``extend`` declares an extend of the state of another SLS.
        """
        if not self.enabled:
            return
        declared = (self.extends if extend else self.states).setdefault(id_, {})
        if state.full_func in declared:
            raise DuplicateState(f"A state with id ''{id_}'', type ''{state.full_func}'' exists")
        for requisite in self.requisites:
            known = state.kwargs.get(requisite.requisite, [])
            state.kwargs[requisite.requisite] = [*known, requisite()]
        declared.update(state())

    def extend(self, id_: str, state: State) -> None:
        """Declare an extend of the state of another SLS. Raise DuplicateState."""
        self.add(id_, state, extend=True)

    def make_extend(self, name: str) -> StateExtend:
        """Return the ID that marks a state as an extend: ``Service.running(extend("apache"))``."""
        return StateExtend(name)

    def push_requisite(self, requisite: StateRequisite) -> None:
        """Begin a ``with`` block: states declared from now on get the requisite."""
        if self.enabled:
            self.requisites.append(requisite)

    def pop_requisite(self) -> None:
        """End the innermost ``with`` block."""
        if self.enabled:
            del self.requisites[-1]


class Rendering(NamedTuple):
    """The rendering that pyobjects belong to: its Registry, and the execution functions for ``Map``."""

    registry: Registry
    functions: Mapping[str, Callable[..., Any]]


#: The rendering of this thread. Code outside of a rendering gets a Registry of its own, whose states nobody reads.
RENDERING: ContextVar[Rendering | None] = ContextVar("statecore.render.pyobjects", default=None)


def rendering() -> Rendering:
    """Return the rendering that runs in this thread; outside of one, a new Rendering that stays for the thread."""
    found = RENDERING.get()
    if found is None:
        found = Rendering(Registry(), {})
        RENDERING.set(found)
    return found


class StateExtend:
    """The ID of a state that an SLS extends."""

    def __init__(self, name: str) -> None:
        self.name = name


class StateRequisite:
    """A requisite on one state, such as ``File("/etc/motd")``. Used in ``with``, states of the block get it."""

    def __init__(self, requisite: str, module: str, id_: str) -> None:
        self.requisite = requisite
        self.module = module
        self.id_ = id_

    def __call__(self) -> dict[str, str]:
        return {self.module: self.id_}

    def __enter__(self) -> StateRequisite:
        rendering().registry.push_requisite(self)
        return self

    def __exit__(self, *error: object) -> None:
        rendering().registry.pop_requisite()


class StateFactory:
    """One state module as an object: ``StateFactory("file").managed("/etc/motd")`` declares a state.

    Called itself, it returns a StateRequisite.
    """

    def __init__(self, module: str, valid_funcs: Collection[str] | None = None) -> None:
        self.module = module
        self.valid_funcs = valid_funcs or ()

    def __getattr__(self, func: str) -> Callable[..., State]:
        if self.valid_funcs and func not in self.valid_funcs:
            raise InvalidFunction(f"The function '{func}' does not exist in the StateFactory for '{self.module}'")

        def declare(id_: str | StateExtend, **kwargs: Any) -> State:
            return State(id_, self.module, func, **kwargs)

        return declare

    def __call__(self, id_: str, requisite: str = "require") -> StateRequisite:
        return StateRequisite(requisite, self.module, id_)


class State:
    """One declared state: its ID, its function and its arguments. Used in ``with``, states of the block require it."""

    def __init__(self, id_: str | StateExtend, module: str, func: str, **kwargs: Any) -> None:
        self.module = module
        self.func = func
        self.kwargs = {name: _listed(value) if name in REQUISITES else value for name, value in kwargs.items()}
        extends = isinstance(id_, StateExtend)
        self.id_: str = id_.name if isinstance(id_, StateExtend) else id_
        rendering().registry.add(self.id_, self, extend=extends)
        self.requisite = StateRequisite("require", self.module, self.id_)

    @property
    def attrs(self) -> list[dict[str, Any]]:
        """The argument list of high data, sorted by argument."""
        return [{name: self._written(name)} for name in sorted(self.kwargs)]

    def _written(self, name: str) -> object:
        value = self.kwargs[name]
        if name not in REQUISITES:
            return value
        return [each() if isinstance(each, StateRequisite) else each for each in value]

    @property
    def full_func(self) -> str:
        """The state function, such as ``file.managed``."""
        return f"{self.module}.{self.func}"

    def __str__(self) -> str:
        return f"{self.id_} = {self.full_func}:{self.attrs}"

    def __call__(self) -> dict[str, list[dict[str, Any]]]:
        return {self.full_func: self.attrs}

    def __enter__(self) -> State:
        rendering().registry.push_requisite(self.requisite)
        return self

    def __exit__(self, *error: object) -> None:
        rendering().registry.pop_requisite()


def _listed(value: object) -> list[object]:
    """Return the value of a requisite argument as a list; one text or map is one reference."""
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        return [value]
    return list(value)


class SaltObject:
    """Execution functions as attributes: ``SaltObject(__salt__).cmd.run("id")``."""

    def __init__(self, salt: Mapping[str, Callable[..., Any]]) -> None:
        self._salt = salt

    def __getattr__(self, mod: str) -> _SaltModule:
        return _SaltModule(self._salt, mod)


class _SaltModule:
    """The functions of one execution module as attributes."""

    def __init__(self, salt: Mapping[str, Callable[..., Any]], module: str) -> None:
        self._salt = salt
        self._module = module

    def __getattr__(self, func: str) -> Callable[..., Any]:
        name = f"{self._module}.{func}"
        if name not in self._salt:
            raise AttributeError(f"there is no function {name}")
        return self._salt[name]


class _Choice(NamedTuple):
    """One inner class of a Map: the grain that it looks at, the value that must match, and its attributes."""

    grain: str
    match: object
    attributes: Mapping[str, object]


class MapMeta(type):
    """Metaclass of ``Map``: sets the attributes that the minion's grains and pillar choose, when a class is defined."""

    def __init__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(name, bases, body, **kwargs)
        chosen: dict[str, object] = {}
        choices = [_choice(item, inner) for item, inner in body.items() if item[0] != "_" and inspect.isclass(inner)]
        functions = rendering().functions
        if choices:
            grains = functions.get("grains.item", _no_salt)(*dict.fromkeys(choice.grain for choice in choices))
            for choice in _by_priority(choices, getattr(cls, "priority", ())):
                if choice.grain in grains and grains[choice.grain] == choice.match:
                    chosen.update(choice.attributes)
        if hasattr(cls, "merge"):
            chosen.update(functions.get("pillar.get", _no_salt)(cls.merge, unmask=True) or {})
        for attribute, value in chosen.items():
            setattr(cls, attribute, value)


def _choice(name: str, inner: type) -> _Choice:
    # A grain's value need not be a Python name, so the inner class may give it as __match__.
    return _Choice(
        getattr(inner, "__grain__", "os_family"),
        getattr(inner, "__match__", name),
        {name: value for name, value in vars(inner).items() if name[0] != "_"},
    )


def _by_priority(choices: list[_Choice], priority: object) -> list[_Choice]:
    """Return the choices in the order of their grains in ``priority``; those of other grains follow as declared."""
    if not isinstance(priority, Iterable):
        log.error("pyobjects: priority must be a tuple or a list of grains, not %r", priority)
        return choices
    order = list(priority)
    return sorted(choices, key=lambda each: order.index(each.grain) if each.grain in order else len(order))


def _no_salt(*args: object, **kwargs: object) -> NoReturn:
    raise StateException("a Map reads grains and pillar, which are there only while an SLS is rendered")


class Map(metaclass=MapMeta):
    """Base class of data by grains: the attributes of the inner classes whose grain matches become its own.

    An inner class names the value of the grain ``os_family``, or of the grain ``__grain__``; ``__match__`` replaces its
    name. ``priority`` orders the grains, later over earlier. ``merge`` is the path of pillar that goes over all.
    """
