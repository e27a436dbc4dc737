"""``salt.pillar`` for users' modules: the pillar of the minion on which the module runs, or on a master of any minion."""

from __future__ import annotations

from collections.abc import Mapping

from statecore.loader.current_context import context_of
from statecore.model.errors import CommandError
from statecore.model.ports import MasterCall
from statecore.model.values import merge


class Pillar:
    """Compiles the pillar of one minion."""

    def __init__(self, minion: str, given: Mapping[str, object], override: Mapping[str, object]) -> None:
        self._minion = minion
        self._given = given
        self._override = override

    def compile_pillar(self, *args: object, **kwargs: object) -> dict[str, object]:
        """Return the pillar, compiled anew, with the given pillar merged over it. Raise CommandError for the pillar of
        another minion, unless this is a master; or if the master cannot compile it.
        """
        ctx = context_of("salt.pillar.get_pillar")
        if ctx.master is not None:
            done = ctx.master.run([MasterCall("pillar.show_pillar", (self._minion,), self._given)])[0]
            if not done["success"]:
                raise CommandError(f"the pillar of {self._minion} was not compiled: {done['return']}")
            found = done["return"]
        elif self._minion == ctx.opts.get("id"):
            found = ctx.call("pillar.items", unmask=True, **self._given)
        else:
            raise CommandError(f"a minion has only its own pillar, not that of {self._minion}")
        return merge(found, self._override)


def get_pillar(
    opts: object,
    grains: object,
    minion_id: object,
    saltenv: str | None = None,
    ext: object = None,
    funcs: object = None,
    pillar_override: Mapping[str, object] | None = None,
    pillarenv: str | None = None,
    extra_minion_data: object = None,
) -> Pillar:
    """Return an object whose ``compile_pillar()`` returns the pillar of a minion: its own, or on a master that of any.

    Grains are those that the master knows. ``ext``, ``funcs`` and ``extra_minion_data`` are ignored.
    """
    environments = {"saltenv": saltenv, "pillarenv": pillarenv}
    given = {name: value for name, value in environments.items() if value is not None}
    return Pillar(str(minion_id), given, pillar_override or {})
