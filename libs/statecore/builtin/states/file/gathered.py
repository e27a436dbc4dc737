"""What ``file.accumulated`` gathered, as the other states of the run see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from statecore.model.context import Context

#: Where a run keeps them.
_KEY = "file.accumulators"


@dataclass(slots=True)
class Gathered:
    """What one run gathered."""

    #: The run's own list of chunks: a process may live longer than a run, what was gathered may not.
    run: tuple[Mapping[str, Any], ...]
    #: File -> accumulator -> its texts.
    texts: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    #: File -> accumulator -> IDs or names that it is for.
    readers: dict[str, dict[str, list[Any]]] = field(default_factory=dict)

    @classmethod
    def of(cls, ctx: Context) -> Gathered:
        """This run's."""
        found = ctx.scratch.get(_KEY)
        if not isinstance(found, cls) or found.run is not ctx.lowstate:
            found = ctx.scratch[_KEY] = cls(ctx.lowstate)
        return found


def of_file(ctx: Context, name: str) -> Mapping[str, list[Any]] | None:
    """The accumulators of a file, None where nobody gathered anything for it."""
    return Gathered.of(ctx).texts.get(name)


def for_state(ctx: Context, name: str) -> list[str]:
    """The texts that this state is meant to see: of the accumulators that name it, of all where none does."""
    gathered = of_file(ctx, name) or {}
    readers = Gathered.of(ctx).readers.get(name, {})
    own = [accumulator for accumulator in gathered if ctx.low.get("__id__") in readers.get(accumulator, ())]
    return [str(text) for accumulator in own or gathered for text in gathered[accumulator]]
