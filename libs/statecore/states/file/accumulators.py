"""Texts that several states gather for one file (``file.accumulated``), for the length of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from statecore.context import Context
from statecore.types import Plan

#: Where a run keeps them.
_KEY = "file.accumulators"


@dataclass(slots=True)
class _Gathered:
    """What one run gathered."""

    #: The run's own list of chunks: a process may live longer than a run, what was gathered may not.
    run: tuple[Mapping[str, Any], ...]
    #: File -> accumulator -> its texts.
    texts: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    #: File -> accumulator -> IDs or names that it is for.
    readers: dict[str, dict[str, list[Any]]] = field(default_factory=dict)

    @classmethod
    def of(cls, ctx: Context) -> _Gathered:
        """This run's."""
        found = ctx.scratch.get(_KEY)
        if not isinstance(found, cls) or found.run is not ctx.lowstate:
            found = ctx.scratch[_KEY] = cls(ctx.lowstate)
        return found


def accumulated(ctx: Context, name: str, filename: str, text: Any) -> Plan:
    """Gathers text for a file, for the ``file.managed`` and ``file.blockreplace`` of this run.

    filename
        the file; the template of its ``file.managed`` sees all texts as ``accumulator``, by the names of the accumulators
    text
        a text or a list of them; what is there already is not put there again
    require_in, watch_in
        one of them has to name the file state that is to see the text
    """
    if text is None:
        return Plan.failed("No text supplied for accumulator")
    readers = [*_listed(ctx.low.get("require_in")), *_listed(ctx.low.get("watch_in"))]
    if not any((isinstance(reader, Mapping) and "file" in reader) or reader == "file" for reader in readers):
        return Plan.failed(f"Orphaned accumulator {name} in {ctx.low.get('__sls__')}:{ctx.low.get('__id__')}")
    texts = list(text) if isinstance(text, list | tuple) else [text]
    gathered = _Gathered.of(ctx).texts.setdefault(filename, {}).setdefault(name, [])
    _Gathered.of(ctx).readers.setdefault(filename, {}).setdefault(name, []).extend(_named(readers))
    new = [one for one in texts if one not in gathered]
    gathered += new
    # The run's own memory is no change of the host: it is charged in test mode too, where others read it.
    return Plan.unchanged(f"Accumulator {name} for file {filename} was charged by text" if new else "")


def of_file(ctx: Context, name: str) -> Mapping[str, list[Any]] | None:
    """The accumulators of a file, None where nobody gathered anything for it."""
    return _Gathered.of(ctx).texts.get(name)


def for_state(ctx: Context, name: str) -> list[str]:
    """The texts that this state is meant to see: of the accumulators that name it, of all where none does."""
    gathered = of_file(ctx, name) or {}
    readers = _Gathered.of(ctx).readers.get(name, {})
    own = [accumulator for accumulator in gathered if ctx.low.get("__id__") in readers.get(accumulator, ())]
    return [str(text) for accumulator in own or gathered for text in gathered[accumulator]]


def _named(readers: list[Any]) -> Iterator[Any]:
    for reader in readers:
        yield from reader.values() if isinstance(reader, Mapping) else [reader]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [] if value is None else [value]
