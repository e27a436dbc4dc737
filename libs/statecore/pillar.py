"""Pillar: the top file's SLS of a tree, merged into one map for one minion (seed 004, protocol section 7.2)."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from statecore import values
from statecore.errors import InvocationError, SlsError
from statecore.ports import Files
from statecore.render import SlsTree
from statecore.render.top import Chosen

log = logging.getLogger(__name__)

_RELATIVE = re.compile(r"(\.+)(.*)")

#: What a fault of rendering begins with, said already.
_REPEATED = re.compile(r"^Rendering SLS '[^']*' failed: ")


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

    Options: pillar_source_merging_strategy, pillar_merge_lists, pillar_includes_override_sls, pillar_safe_render_error,
    state_top, env_order, renderer, jinja_*. ``pillarenv`` limits the
    run to one environment; ``override`` is laid over the result, and is what templates see as ``pillar``.
    """
    asked = pillarenv or (saltenv if opts.get("pillarenv_from_saltenv") else None)
    own = {**opts, "id": minion_id, "saltenv": asked}
    tree = SlsTree(files, opts=own, grains=grains, pillar=override or {}, functions=functions)
    compilation = _Compilation(tree, opts)
    try:
        # Without merging there is one environment only.
        chosen = tree.chosen("replace", asked or ("base" if _strategy(opts) == "none" else ""))
    except SlsError as error:
        compilation.fail("Rendering Primary Top file failed, render error:", error)
        chosen = Chosen()
    compilation.optional = frozenset(chosen.optional)
    data: dict[str, Any] = {}
    for env, refs in chosen.refs.items():
        for sls in dict.fromkeys(sls for ref in refs for sls in tree.find(ref, env) or [ref]):
            data = compilation.merged(data, compilation.render(sls, env, {}))
    if override:
        data = compilation.merged(data, dict(override))
    return PillarResult(data, tuple(compilation.errors))


@dataclass(slots=True)
class _Compilation:
    """A walk over pillar SLS and what they include."""

    tree: SlsTree
    opts: Mapping[str, Any]
    #: (environment, SLS) whose absence is no error.
    optional: frozenset[tuple[str, str]] = frozenset()
    errors: list[str] = field(default_factory=list)
    #: What was rendered, with which defaults; while its includes are walked over, what it says itself.
    _known: dict[tuple[str, str, str], dict[str, Any] | None] = field(default_factory=dict)

    def merged(self, under: dict[str, Any], over: dict[str, Any] | None) -> dict[str, Any]:
        """Both as one, by the merging strategy of the options."""
        if not over:
            return under
        strategy = _strategy(self.opts)
        lists = bool(self.opts.get("pillar_merge_lists", False)) and strategy != "none"
        try:
            data: dict[str, Any] = values.merge(under, over, strategy, lists=lists)
        except InvocationError as error:
            self._add(f"pillar_source_merging_strategy: {error}")
            return under
        return data

    def render(self, sls: str, saltenv: str, defaults: Mapping[str, Any]) -> dict[str, Any] | None:
        """An SLS over what it includes; None when it cannot be rendered. Nothing is rendered twice with the same defaults."""
        key = (saltenv, sls, repr(sorted(defaults.items())))
        if key not in self._known:
            self._known[key] = None
            data = self._data(sls, saltenv, defaults)
            if data is None:
                return None
            include = data.pop("include", None) or []
            self._known[key] = data
            self._known[key] = self._over(include, data, sls, saltenv)
        return self._known[key]

    def _data(self, sls: str, saltenv: str, defaults: Mapping[str, Any]) -> dict[str, Any] | None:
        if not self.tree.find(sls, saltenv):
            if (saltenv, sls) not in self.optional:
                text = f"Specified SLS '{sls}' in environment '{saltenv}' is not available on the salt master"
                self._add(f"{text}: {self.tree.hint(sls, saltenv)}")
            return None
        try:
            return dict(self.tree.data(sls, saltenv, defaults))
        except SlsError as error:
            self.fail(f"Rendering SLS '{sls}' failed.", error)
            return None

    def _over(self, include: Any, data: dict[str, Any], sls: str, saltenv: str) -> dict[str, Any]:
        """Data of an SLS over what it includes; under it with ``pillar_includes_override_sls``."""
        if not isinstance(include, list):
            self._add(f"Include Declaration in SLS '{sls}' is not formed as a list")
            return data
        under: dict[str, Any] = {}
        for entry in include:
            under = self.merged(under, self._included(entry, sls, saltenv))
        both = (data, under) if self.opts.get("pillar_includes_override_sls") else (under, data)
        return self.merged(*both) if both[0] else both[1]

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
        """Notes the faults of an SLS: all of it in the log; the minion is told the place, and what is wrong only where
        ``pillar_safe_render_error`` is off: the words of an error may hold what another minion may not see."""
        for fault in error.faults:
            place = f" ({fault.mark})" if fault.mark is not None else ""
            reason = _REPEATED.sub("", fault.message)
            log.error("%s %s%s", what, reason, place)
            if not self.opts.get("pillar_safe_render_error", True):
                self._add(f"{what.removesuffix('.').removesuffix(', render error:')}, render error: {reason}{place}")
            elif fault.message.startswith(f"SLS {fault.sls} "):
                # It is not of the kind that holds data. Salt quotes the name here.
                self._add(fault.message.replace(f"SLS {fault.sls} ", f"SLS '{fault.sls}' ", 1) + place)
            else:
                self._add(f"{what} Please see master log for details.{place}")

    def _add(self, error: str) -> None:
        if error not in self.errors:
            self.errors.append(error)


def _strategy(opts: Mapping[str, Any]) -> str:
    return str(opts.get("pillar_source_merging_strategy") or "smart")
