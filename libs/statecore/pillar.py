"""Pillar: the top file's SLS of a tree, merged into one map for one minion (seed 004, protocol section 7.2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from statecore import values
from statecore.errors import InvocationError, SlsError, SlsFault
from statecore.ports import Files
from statecore.render import SlsTree

_RELATIVE = re.compile(r"(\.+)(.*)")


@dataclass(frozen=True, slots=True)
class PillarResult:
    """What a minion gets, and what went wrong on the way. Nothing of a file with an error is in the data."""

    data: dict[str, Any]
    #: One sentence each, with file and line; no excerpts, which could show another minion's secrets.
    errors: tuple[str, ...]


def compile_pillar(
    files: Files,
    *,
    minion_id: str,
    grains: Mapping[str, Any],
    opts: Mapping[str, Any],
    functions: Mapping[str, Callable[..., Any]],
    saltenv: str | None = None,
    pillarenv: str | None = None,
    override: Mapping[str, Any] | None = None,
) -> PillarResult:
    """The pillar of a minion from the tree in ``files``.

    Options: pillar_source_merging_strategy, pillar_merge_lists, state_top, renderer, jinja_*. ``pillarenv`` limits the
    run to one environment; ``override`` is laid over the result, and is what templates see as ``pillar``.
    """
    asked = pillarenv or (saltenv if opts.get("pillarenv_from_saltenv") else None)
    own = {**opts, "id": minion_id, "saltenv": asked, "top_file_merging_strategy": "merge_all"}
    tree = SlsTree(files, opts=own, grains=grains, pillar=override or {}, functions=functions)
    compilation = _Compilation(tree, opts)
    try:
        matches = tree.top()
    except SlsError as error:
        compilation.fail("Error encountered while rendering pillar top file.", error)
        matches = {}
    data: dict[str, Any] = {}
    for env, refs in matches.items():
        for ref in refs:
            for sls in tree.find(ref, env) or [ref]:
                data = compilation.merged(data, compilation.render(sls, env, {}))
    if override:
        data = compilation.merged(data, dict(override))
    return PillarResult(data, tuple(compilation.errors))


@dataclass(slots=True)
class _Compilation:
    """A walk over pillar SLS and what they include."""

    tree: SlsTree
    opts: Mapping[str, Any]
    errors: list[str] = field(default_factory=list)
    _seen: set[tuple[str, str]] = field(default_factory=set)

    def merged(self, under: dict[str, Any], over: dict[str, Any] | None) -> dict[str, Any]:
        """Both as one, by the merging strategy of the options."""
        if not over:
            return under
        strategy = str(self.opts.get("pillar_source_merging_strategy") or "smart")
        lists = bool(self.opts.get("pillar_merge_lists", False))
        try:
            data: dict[str, Any] = values.merge(under, over, strategy, lists=lists)
        except InvocationError as error:
            self._add(f"pillar_source_merging_strategy: {error}")
            return under
        return data

    def render(self, sls: str, saltenv: str, defaults: Mapping[str, Any]) -> dict[str, Any] | None:
        """An SLS over what it includes; None when it was here already, or cannot be rendered."""
        if (saltenv, sls) in self._seen:
            return None
        self._seen.add((saltenv, sls))
        if not self.tree.find(sls, saltenv):
            if not self.opts.get("ignore_missing"):
                self._add(
                    f"Specified SLS '{sls}' in environment '{saltenv}' was not found: {self.tree.hint(sls, saltenv)}"
                )
            return None
        try:
            data = dict(self.tree.data(sls, saltenv, defaults))
        except SlsError as error:
            self.fail(f"Rendering SLS '{sls}' failed.", error)
            return None
        include = data.pop("include", None) or []
        if not isinstance(include, list):
            self._add(f"Include Declaration in SLS '{sls}' is not formed as a list")
            return data
        under: dict[str, Any] = {}
        for entry in include:
            under = self.merged(under, self._included(entry, sls, saltenv))
        return self.merged(under, data)

    def _included(self, entry: Any, includer: str, saltenv: str) -> dict[str, Any]:
        """What one include gives: ``name``, or ``name: {defaults: {...}, key: a:b}``."""
        wanted: Any = entry
        options: Any = {}
        if isinstance(entry, Mapping) and len(entry) == 1:
            wanted, options = next(iter(entry.items()))
        if not isinstance(options, Mapping):
            self._add(f"The include of '{wanted}' in SLS '{includer}' takes defaults and key, not {options!r}")
            return {}
        reference = self._absolute(str(wanted), includer, saltenv)
        data: dict[str, Any] = {}
        for sls in self.tree.find(reference, saltenv) or [reference]:
            data = self.merged(data, self.render(sls, saltenv, options.get("defaults") or {}))
        if data and options.get("key"):
            for part in reversed(str(options["key"]).split(values.DELIMITER)):
                data = {part: data}
        return data

    def _absolute(self, wanted: str, includer: str, saltenv: str) -> str:
        """The full reference of a relative one: dots count levels."""
        found = _RELATIVE.fullmatch(wanted)
        if found is None:
            return wanted
        dots, rest = found.groups()
        levels = includer.split(".")
        if self.tree.source(includer, saltenv).path.endswith("/init.sls"):
            levels.append("init")
        return ".".join([*levels[: -len(dots)], rest])

    def fail(self, what: str, error: SlsError) -> None:
        """Notes the faults of an SLS."""
        for fault in error.faults:
            self._add(f"{what} {_brief(fault)}")

    def _add(self, error: str) -> None:
        if error not in self.errors:
            self.errors.append(error)


def _brief(fault: SlsFault) -> str:
    place = f" at {fault.mark}" if fault.mark is not None else ""
    return fault.message + place
