"""``ctx``, the first parameter of every native module, state and grain function: all it may reach, by name.

There are no ambient names. The loader builds one Context for a run and binds functions to it; the engine derives one
for each low chunk with ``for_chunk``. Salt's dunders exist only behind ``loader/dunders.py``, for users' own modules.
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
    """What one call sees. Shared mappings are read only but for ``scratch``, ``functions`` and ``states`` (lazy tables)."""

    #: The managed system; nothing may touch paths, users or programs but through it.
    host: ManagedHost
    grains: Mapping[str, Any]
    pillar: Mapping[str, Any]
    #: Options by Salt's names ("id", "file_roots", "state_output", ...), defaults already applied.
    opts: Mapping[str, Any]
    files: Files
    templates: Templates
    events: Events
    jobs: Jobs
    minion: MinionControl
    catalog: Catalog
    state_system: StateSystem
    #: "cmd.run" -> bound callable. A missing name raises NotAvailable with its reason.
    functions: Mapping[str, Function]
    #: "file.managed" -> bound callable that returns Salt's state dict (plan applied, or reported in test mode).
    states: Mapping[str, Function]
    #: Kind of modules ("utils", "matchers", ...) -> its table.
    tables: Mapping[str, Mapping[str, Function]] = field(default_factory=dict)
    #: Lives as long as the run; Salt's __context__. Key it by module: ``ctx.scratch["pkg.refreshed"]``.
    scratch: dict[str, Any] = field(default_factory=dict)
    saltenv: str = "base"
    test: bool = False
    #: The low chunk in hand (state functions), else empty.
    low: Mapping[str, Any] = field(default_factory=dict)
    running: Mapping[str, Any] = field(default_factory=dict)
    lowstate: tuple[Mapping[str, Any], ...] = ()
    #: The master that runs this orchestration; None on minions.
    master: Master | None = None

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Calls an execution module function. Raises NotAvailable, or whatever the function raises."""
        try:
            function = self.functions[name]
        except KeyError:
            raise NotAvailable(name) from None
        return function(*args, **kwargs)

    def may(self, name: str) -> bool:
        """Whether jobs, and who writes an SLS, may call the function: the option ``whitelist_modules``. Modules may call any."""
        named = self.opts.get("whitelist_modules")
        return not named or name.partition(".")[0] in named

    def asked(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """``call``, of a function that who wrote an SLS names. Raises NotAvailable where it may not be called, too."""
        if not self.may(name):
            raise NotAvailable(name)
        return self.call(name, *args, **kwargs)

    def for_chunk(self, low: Mapping[str, Any], *, test: bool, running: Mapping[str, Any]) -> Context:
        """The same run seen from one low chunk."""
        # Made once for every state, so all that stays is taken over at once: dataclasses.replace looks at every field again.
        own = object.__new__(Context)
        vars(own).update(vars(self), low=low, test=test, running=running, saltenv=low.get("__env__", self.saltenv))
        return own
