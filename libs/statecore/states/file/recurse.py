"""``file.recurse``: a directory of the state tree on the host, as one plan made of many."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statecore import managed_file
from statecore.context import Context
from statecore.errors import HostError, InvocationError, StatecoreError, StateFailure
from statecore.states.file.directory import directory
from statecore.states.file.managed import managed
from statecore.states.file.places import Refused, managed_elsewhere, patterns, place_of, walk
from statecore.states.file.symlink import symlink
from statecore.types import Outcome, Plan, Step


def recurse(
    ctx: Context,
    name: str,
    source: Any,
    keep_source: bool = True,
    clean: bool = False,
    require: Any = None,
    user: Any = None,
    group: Any = None,
    dir_mode: Any = None,
    file_mode: Any = None,
    sym_mode: Any = None,
    template: str | None = None,
    context: Mapping[str, Any] | None = None,
    replace: bool = True,
    defaults: Mapping[str, Any] | None = None,
    include_empty: bool = False,
    backup: Any = "",
    include_pat: Any = None,
    exclude_pat: Any = None,
    maxdepth: int | None = None,
    keep_symlinks: bool = False,
    force_symlinks: bool = False,
    show_changes: bool = True,
    follow_symlinks: bool = True,
    saltenv: str | None = None,
) -> Plan:
    """A whole directory of the state tree below ``name``; ``clean`` removes what the tree does not have."""
    try:
        place = place_of(ctx, name)
        if place.exists() and not place.is_dir():
            raise Refused(f"The path {name} exists and is not a directory")
        tree = _Tree.find(
            ctx, source, saltenv or ctx.saltenv, include_pat, exclude_pat, maxdepth, keep_symlinks=keep_symlinks
        )
        parts = dict(_recurse_parts(ctx, name, tree, locals()))
    except (Refused, HostError, InvocationError) as error:
        return Plan.failed(str(error))
    return _joined(ctx, name, place, parts, tree if clean else None)


@dataclass(frozen=True, slots=True)
class _Tree:
    """A directory of the state tree, as far as ``recurse`` wants it; paths are relative to it."""

    top: str
    saltenv: str
    files: tuple[str, ...]
    dirs: tuple[str, ...]
    empty: tuple[str, ...]
    links: Mapping[str, str]

    @classmethod
    def find(
        cls,
        ctx: Context,
        source: Any,
        saltenv: str,
        include: Any,
        exclude: Any,
        maxdepth: int | None,
        *,
        keep_symlinks: bool,
    ) -> _Tree:
        """The first source that exists."""
        tried = [str(one) for one in (source if isinstance(source, list) else [source])]
        for address in tried:
            if not address.startswith("salt://"):
                raise Refused(f"Invalid source '{address}' (must be a salt:// URI)")
            env = address.partition("?saltenv=")[2] or saltenv
            top = address.removeprefix("salt://").partition("?")[0].strip("/")
            prefix = f"{top}/" if top else ""
            paths = [path[len(prefix) :] for path in ctx.files.paths(env, prefix)]
            dirs = [path[len(prefix) :] for path in ctx.files.dirs(env, prefix)]
            if not paths and not dirs and top not in ctx.files.dirs(env):
                continue

            def wanted(path: str) -> bool:
                deep = maxdepth is not None and path.count("/") > int(maxdepth)
                return not deep and _wanted(path, include, exclude)

            links = (
                {path[len(prefix) :]: to for path, to in ctx.files.symlinks(env, prefix).items()}
                if keep_symlinks
                else {}
            )
            kept = tuple(path for path in paths if wanted(path) and path not in links)
            empty = tuple(path[len(prefix) :] for path in ctx.files.empty_dirs(env, prefix))
            below = sorted({str(parent) for path in kept for parent in Path(path).parents if str(parent) != "."})
            return cls(top, env, kept, tuple(below), empty, links)
        raise Refused(
            f"Recurse failed: none of the specified sources were found: {', '.join(tried)} (in saltenv '{saltenv}')"
        )


def _wanted(path: str, include: Any, exclude: Any) -> bool:
    included = include is None or any(_pattern_matches(path, pattern) for pattern in patterns(include))
    return included and not any(_pattern_matches(path, pattern) for pattern in patterns(exclude))


def _pattern_matches(path: str, pattern: str) -> bool:
    if pattern.startswith("E@"):
        try:
            return re.search(pattern[2:], path) is not None
        except re.error as error:
            raise Refused(f"'{pattern}' is no regular expression: {error}") from error
    return fnmatch.fnmatchcase(path, pattern)


def _recurse_parts(ctx: Context, name: str, tree: _Tree, given: Mapping[str, Any]) -> Iterator[tuple[str, Plan]]:
    """(path of the host, plan) for the directory, each directory in it, each file, each link."""
    top = name.rstrip("/")
    owner = {"user": given["user"], "group": given["group"]}
    dirs = {"dir_mode": given["dir_mode"], "makedirs": True, **owner}
    yield name, directory(ctx, name, **dirs)
    for relative in (*tree.dirs, *(tree.empty if given["include_empty"] else ())):
        yield f"{top}/{relative}", directory(ctx, f"{top}/{relative}", **dirs)
    for relative in tree.files:
        yield (
            f"{top}/{relative}",
            managed(
                ctx,
                f"{top}/{relative}",
                source=f"salt://{tree.top}/{relative}" if tree.top else f"salt://{relative}",
                mode=given["file_mode"] if given["file_mode"] is not None else "0644",
                dir_mode=given["dir_mode"],
                makedirs=True,
                template=given["template"],
                context=given["context"],
                defaults=given["defaults"],
                replace=given["replace"],
                backup=given["backup"],
                show_changes=given["show_changes"],
                follow_symlinks=given["follow_symlinks"],
                saltenv=tree.saltenv,
                **owner,
            ),
        )
    for relative, target in tree.links.items():
        yield (
            f"{top}/{relative}",
            symlink(ctx, f"{top}/{relative}", target, force=given["force_symlinks"], makedirs=True, **owner),
        )


def _joined(ctx: Context, name: str, place: Path, parts: Mapping[str, Plan], clean: _Tree | None) -> Plan:
    """One plan of many: its changes are theirs by path."""
    failed = {path: plan.comment for path, plan in parts.items() if not plan.steps and not plan.result}
    if failed:
        return Plan.failed("\n".join(f"#### {path} ####\n{why}" for path, why in failed.items()))
    steps: list[Step] = []
    changes: dict[str, Any] = {}
    lines: list[str] = []
    for path, plan in parts.items():
        if plan.steps:
            changes[path] = dict(plan.changes)
            lines.append(f"#### {path} ####\n{plan.comment}")
            steps += [Step(step.what, _nested(path, step)) for step in plan.steps]
    for path in _not_in_tree(ctx, name, place, parts) if clean is not None else ():
        changes.setdefault("removed", []).append(path)
        lines.append(f"#### removed ####\n{path}")
        steps.append(Step(f"remove {path}", _removal(ctx.host.path(path, follow=False), path)))
    if not steps:
        return Plan.unchanged(f"The directory {name} is in the correct state")
    steps.append(Step("say so", lambda: Outcome(f"Recursively updated {name}")))
    return Plan.change("\n\n".join(lines), steps, changes)


def _nested(path: str, step: Step) -> Callable[[], Outcome]:
    def work() -> Outcome:
        try:
            outcome = step.run()
        except StatecoreError as error:
            raise StateFailure(f"#### {path} ####\n{error}") from error
        return Outcome(
            "" if outcome.ok else outcome.comment, {path: dict(outcome.changes)} if outcome.changes else {}, outcome.ok
        )

    return work


def _removal(place: Path, path: str) -> Callable[[], Outcome]:
    def work() -> Outcome:
        if os.path.lexists(place):
            managed_file.remove(place)
        return Outcome("", {"removed": [path]})

    return work


def _not_in_tree(ctx: Context, name: str, place: Path, parts: Mapping[str, Plan]) -> list[str]:
    """What ``clean`` removes: what neither the tree nor another state has. A directory stands for all that is in it."""
    keep = set(parts) | managed_elsewhere(ctx, name)
    keep |= {str(parent) for path in keep for parent in Path(path).parents}
    found: list[str] = []
    if not place.is_dir():
        return found
    for path, _, _ in walk(place):
        shown = f"{name.rstrip('/')}/{path.relative_to(place).as_posix()}"
        if shown not in keep and not any(shown.startswith(f"{gone}/") for gone in found):
            found.append(shown)
    return found
