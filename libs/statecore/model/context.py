"""``Context``, the first parameter ``ctx`` of every native module, state and grain function: everything the function
may use.

A function finds nothing through global names. The loader makes one Context for a run and binds functions to it. The
engine derives one Context for each low chunk with ``for_chunk``. Salt's dunders (``__salt__``, ``__grains__``) exist
only for users' own modules; see ``loader/dunders.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from statecore.model.errors import NotAvailable
from statecore.model.ports import (
    Catalog,
    Events,
    Files,
    Function,
    Jobs,
    ManagedHost,
    Master,
    MinionControl,
    StateSystem,
    Templates,
)


@dataclass(frozen=True)
class Context:
    """Data (grains, pillar, options ...) and services (host, files, events ...) that a function of a module may use
    during one call.

    The maps are read-only, except ``scratch``. ``functions`` and ``states`` load modules on first use.
    """

    #: The managed host. Functions reach paths, users and programs only through it.
    host: ManagedHost
    grains: Mapping[str, Any]
    pillar: Mapping[str, Any]
    #: Options by Salt's names ("id", "file_roots", "state_output", ...), with defaults.
    opts: Mapping[str, Any]
    files: Files
    templates: Templates
    events: Events
    jobs: Jobs
    minion: MinionControl
    catalog: Catalog
    state_system: StateSystem
    #: "cmd.run" -> callable, bound to this Context. A missing name raises NotAvailable with the reason.
    functions: Mapping[str, Function]
    #: "file.managed" -> callable that returns Salt's state return: of the applied plan, or of the plan in test mode.
    states: Mapping[str, Function]
    #: Kind of modules ("utils", "matchers", ...) -> {"module.function": callable}.
    tables: Mapping[str, Mapping[str, Function]] = field(default_factory=dict)
    #: Salt's __context__: data that functions keep during the run. Keys begin with the module: "pkg.refreshed".
    scratch: dict[str, Any] = field(default_factory=dict)
    saltenv: str = "base"
    test: bool = False
    #: The low chunk that a state function runs for; {} for other functions.
    low: Mapping[str, Any] = field(default_factory=dict)
    running: Mapping[str, Any] = field(default_factory=dict)
    lowstate: tuple[Mapping[str, object], ...] = ()
    #: The master that runs this orchestration; None on a minion.
    master: Master | None = None

    def call(self, name: str, /, *args: object, **kwargs: object) -> Any:
        """Call an execution function such as ``cmd.run`` and return its result. Raise NotAvailable if there is no such
        function; errors of the function are passed on.
        """
        try:
            function = self.functions[name]
        except KeyError:
            raise NotAvailable(name) from None
        return function(*args, **kwargs)

    def may(self, name: str) -> bool:
        """Return True if the option ``whitelist_modules`` allows jobs and SLS files to call this function.

        Execution modules may call every function, whatever the option says.
        """
        named = self.opts.get("whitelist_modules")
        return not named or name.partition(".")[0] in named

    def asked(self, name: str, /, *args: object, **kwargs: object) -> Any:
        """Call an execution function that an SLS file names, and return its result.

        Raises NotAvailable when the function does not exist or the option ``whitelist_modules`` excludes it.
        """
        if not self.may(name):
            raise NotAvailable(name)
        return self.call(name, *args, **kwargs)

    def for_chunk(self, low: Mapping[str, object], *, test: bool, running: Mapping[str, object]) -> Context:
        """Return a copy of this Context for one low chunk: with its ``low``, ``test``, ``running`` and ``saltenv``."""
        # Runs once for every state. Copying the fields in one step is faster than dataclasses.replace.
        own = object.__new__(Context)
        vars(own).update(vars(self), low=low, test=test, running=running, saltenv=low.get("__env__", self.saltenv))
        return own
