"""The Python objects that an SLS of the renderer ``pyobjects`` uses: a call of a state function declares a state, and
all declared states become high data.

An SLS calls ``File.managed("/etc/motd", mode="0644")``; the call adds a state to the Registry of the current
rendering. ``salt.utils.pyobjects`` gives the same objects to users' code, which must find that Registry without an
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
    """Base class of the errors that the calls of an SLS of the renderer ``pyobjects`` raise."""


class DuplicateState(StateException):
    """Error: an SLS declares the same state function twice under one ID."""


class InvalidFunction(StateException):
    """Error: an SLS of the renderer ``pyobjects`` calls a function that its state module does not have."""


class Registry:
    """The states, includes and extends that one SLS of the renderer ``pyobjects`` has declared so far."""

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
        """Forget all states, includes, extends and requisites that the SLS has declared."""
        self.states, self.extends, self.includes, self.requisites = {}, {}, [], []

    def include(self, *slses: object) -> None:
        """Add SLS references to the includes of the SLS that is rendered."""
        if self.enabled:
            self.includes += slses

    def salt_data(self) -> dict[str, Any]:
        """Return the states, includes and extends that the SLS has declared as high data, and forget them."""
        data: dict[str, Any] = dict(self.states)
        if self.includes:
            data["include"] = self.includes
        if self.extends:
            data["extend"] = self.extends
        self.empty()
        return data

    def add(self, id_: str, state: State, extend: bool = False) -> None:
        """Add the state ``state`` with the ID ``id_`` to the declared states, with the requisites of the open ``with``
        blocks. Raise DuplicateState if this ID has the same state function already.

        ``extend``: the state belongs to another SLS, and is added to the extends.
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
        """Add arguments for the state ``id_`` of another SLS to the declared extends. Raise DuplicateState if this ID
        has an extend of the same state function already.
        """
        self.add(id_, state, extend=True)

    def make_extend(self, name: str) -> StateExtend:
        """Return ``name`` as a StateExtend. A state that is declared with it as its ID extends that state of another
        SLS: ``Service.running(extend("apache"))``.
        """
        return StateExtend(name)

    def push_requisite(self, requisite: StateRequisite) -> None:
        """Begin a ``with`` block of an SLS: each state that is declared from now on gets this requisite."""
        if self.enabled:
            self.requisites.append(requisite)

    def pop_requisite(self) -> None:
        """End the innermost ``with`` block of an SLS: states that are declared from now on do not get its requisite."""
        if self.enabled:
            del self.requisites[-1]


class Rendering(NamedTuple):
    """The data of one rendering of an SLS by ``pyobjects``: the Registry of its declared states, and the execution
    functions that ``Map`` calls.
    """

    registry: Registry
    functions: Mapping[str, Callable[..., Any]]


#: The rendering of this thread. Code outside of a rendering gets a Registry of its own, whose states nobody reads.
RENDERING: ContextVar[Rendering | None] = ContextVar("statecore.render.pyobjects", default=None)


def rendering() -> Rendering:
    """Return the Rendering of the SLS that this thread renders with ``pyobjects``; if it renders none, a new
    Rendering, which later calls in the thread return too.
    """
    found = RENDERING.get()
    if found is None:
        found = Rendering(Registry(), {})
        RENDERING.set(found)
    return found


class StateExtend:
    """The ID of a state of another SLS, which an SLS of the renderer ``pyobjects`` extends."""

    def __init__(self, name: str) -> None:
        self.name = name


class StateRequisite:
    """A requisite on one state, such as ``File("/etc/motd")``, in an SLS of the renderer ``pyobjects``. In ``with
    File("/etc/motd"):`` all states of the block get the requisite.
    """

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
    """A state module as an object in an SLS of the renderer ``pyobjects``:
    ``StateFactory("file").managed("/etc/motd")`` declares a state.

    A call of the object itself, ``StateFactory("file")("/etc/motd")``, returns a StateRequisite.
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
    """One state that an SLS of the renderer ``pyobjects`` declares: its ID, its function and its arguments. In ``with
    STATE:`` all states of the block require it.
    """

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
        """The state's arguments as high data has them: a list of maps with one argument each, sorted by argument."""
        return [{name: self._written(name)} for name in sorted(self.kwargs)]

    def _written(self, name: str) -> object:
        value = self.kwargs[name]
        if name not in REQUISITES:
            return value
        return [each() if isinstance(each, StateRequisite) else each for each in value]

    @property
    def full_func(self) -> str:
        """Name of the state function with its module, such as ``file.managed``."""
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
    """Return the value of a requisite argument (``require`` ...) as a list. A text or a map becomes the only item."""
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        return [value]
    return list(value)


class SaltObject:
    """Gives an SLS of the renderer ``pyobjects`` the execution functions as attributes: ``salt.cmd.run("id")``."""

    def __init__(self, salt: Mapping[str, Callable[..., Any]]) -> None:
        self._salt = salt

    def __getattr__(self, mod: str) -> _SaltModule:
        return _SaltModule(self._salt, mod)


class _SaltModule:
    """Gives an SLS the functions of one execution module as attributes: ``salt.cmd`` has ``run``."""

    def __init__(self, salt: Mapping[str, Callable[..., Any]], module: str) -> None:
        self._salt = salt
        self._module = module

    def __getattr__(self, func: str) -> Callable[..., Any]:
        name = f"{self._module}.{func}"
        if name not in self._salt:
            raise AttributeError(f"there is no function {name}")
        return self._salt[name]


class _Choice(NamedTuple):
    """One inner class of a ``Map`` class: the name of a grain, the value that the grain must have, and the attributes
    for this case.
    """

    grain: str
    match: object
    attributes: Mapping[str, object]


class MapMeta(type):
    """Metaclass of ``Map``: when a subclass is defined, copies the attributes of those inner classes whose grain has
    the required value, and then the pillar's values, into the subclass.
    """

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
    """Return the inner classes of a ``Map`` (choices) in the order of their grains in ``priority``; classes for other
    grains follow in the order of the file.
    """
    if not isinstance(priority, Iterable):
        log.error("pyobjects: priority must be a tuple or a list of grains, not %r", priority)
        return choices
    order = list(priority)
    return sorted(choices, key=lambda each: order.index(each.grain) if each.grain in order else len(order))


def _no_salt(*args: object, **kwargs: object) -> NoReturn:
    raise StateException("a Map reads grains and pillar, which are there only while an SLS is rendered")


class Map(metaclass=MapMeta):
    """Base class for data that depends on grains, in an SLS of the renderer ``pyobjects``. A subclass gets the
    attributes of its inner classes whose grain has the required value.

    An inner class is for the grain ``os_family``, or for the grain in its ``__grain__``. The required value is the
    class's name, or ``__match__``. ``priority`` lists grains: the attributes for a later grain replace those for an
    earlier one. ``merge`` is a path in pillar whose values replace all others.
    """
