"""Texts that several states gather for one file (``file.accumulated``), for the length of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from statecore.builtin.states.file.gathered import Gathered
from statecore.model.context import Context
from statecore.model.types import Plan


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
    gathered = Gathered.of(ctx).texts.setdefault(filename, {}).setdefault(name, [])
    Gathered.of(ctx).readers.setdefault(filename, {}).setdefault(name, []).extend(_named(readers))
    new = [one for one in texts if one not in gathered]
    gathered += new
    # The run's own memory is no change of the host: it is charged in test mode too, where others read it.
    return Plan.unchanged(f"Accumulator {name} for file {filename} was charged by text" if new else "")


def _named(readers: list[Any]) -> Iterator[Any]:
    for reader in readers:
        yield from reader.values() if isinstance(reader, Mapping) else [reader]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [] if value is None else [value]
