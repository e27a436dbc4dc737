"""``salt.pillar`` for users' modules: the pillar of the minion on which the module runs, or on a master of any minion."""

from __future__ import annotations

from collections.abc import Mapping

from statecore.loader.current_context import context_of
from statecore.model.errors import CommandError
from statecore.model.ports import MasterCall
from statecore.model.values import merge


class Pillar:
    """The pillar of one minion, which ``compile_pillar`` compiles and returns."""

    def __init__(self, minion: str, given: Mapping[str, object], override: Mapping[str, object]) -> None:
        self._minion = minion
        self._given = given
        self._override = override

    def compile_pillar(self, *args: object, **kwargs: object) -> dict[str, object]:
        """Return the minion's pillar, compiled anew, with the pillar given in the call (``pillar_override``) merged
        over it.

        Raise CommandError if the master cannot compile it, and on a minion for the pillar of another minion.
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
    """Return a Pillar, whose ``compile_pillar()`` returns the pillar of the minion ``minion_id``: on a minion its own,
    on a master that of any minion.

    The minion's grains are those that the master knows. ``ext``, ``funcs`` and ``extra_minion_data`` are ignored.
    """
    environments = {"saltenv": saltenv, "pillarenv": pillarenv}
    given = {name: value for name, value in environments.items() if value is not None}
    return Pillar(str(minion_id), given, pillar_override or {})
