"""``file.recurse``: copies a directory of the state tree to the host.

Its plan joins the plans of all files, directories and links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from statecore.builtin.states.file.arguments import Refused, local_path, refuse_windows, step
from statecore.builtin.states.file.directory import directory
from statecore.builtin.states.file.links import symlink
from statecore.builtin.states.file.managed import managed
from statecore.builtin.states.file.tree import Tree, unmanaged_entries
from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.host.content.write_plan import NOTE
from statecore.host.rooted_path import lexists
from statecore.loader.arguments import names_of
from statecore.model.context import Context
from statecore.model.errors import HostError, InvocationError, StatecoreError, StateFailure
from statecore.model.types import Outcome, Plan, Step

#: Function -> arguments that its ``**kwargs`` takes: the others of ``file.managed``, and one that it refuses.
OPTIONS: Mapping[str, frozenset[str]] = {
    "recurse": names_of(managed)
    - {"source", "mode", "makedirs", "attrs", "contents", "contents_pillar", "contents_grains", "create"}
    | {"mode"}
}


def recurse(
    ctx: Context,
    name: str,
    source: object,
    keep_source: bool = True,
    clean: bool = False,
    require: object = None,
    user: str | int | None = None,
    group: str | int | None = None,
    dir_mode: object = None,
    file_mode: object = None,
    sym_mode: object = None,
    template: str | None = None,
    context: Mapping[str, object] | None = None,
    replace: bool = True,
    defaults: Mapping[str, object] | None = None,
    include_empty: bool = False,
    backup: object = "",
    include_pat: object = None,
    exclude_pat: object = None,
    maxdepth: int | None = None,
    keep_symlinks: bool = False,
    force_symlinks: bool = False,
    show_changes: bool = True,
    follow_symlinks: bool = True,
    saltenv: str | None = None,
    merge: bool = False,
    win_owner: object = None,
    win_perms: object = None,
    win_deny_perms: object = None,
    win_inheritance: bool = True,
    **kwargs: object,
) -> Plan:
    """Copy a whole directory of the state tree to ``name``.

    source
        ``salt://`` URL of the directory; of a list, the first that exists
    merge
        True: copy all sources of a list; if several contain the same file, the first source is used
    clean
        True: remove files of the host that the tree does not contain and no state of this run manages
    include_pat, exclude_pat
        glob, or regular expression after ``E@``, of paths to copy, or to leave out
    maxdepth
        number of directory levels below the source to copy
    include_empty
        True: also create empty directories
    keep_symlinks, force_symlinks, sym_mode
        True: create links as links; replace files that have a link's name; mode of directories made for links
    file_mode, dir_mode
        modes of files (default 0644) and of directories
    keep_source, template, context, defaults, replace, backup, show_changes, follow_symlinks, skip_verify and others
        as in ``file.managed``, for each file
    """
    given = {**locals(), "name": name.rstrip("/") or name}
    if "mode" in kwargs:
        return Plan.failed("'mode' is not allowed in 'file.recurse'. Please use 'file_mode' and 'dir_mode'.")
    try:
        refuse_windows(given)
        place = local_path(ctx, name)
        if place.exists() and not place.is_dir():
            raise Refused(f"The path {name} exists and is not a directory")
        tree = Tree.of(ctx, given)
        parts = dict(_parts(ctx, tree, given))
        gone = unmanaged_entries(ctx, given["name"], place, parts, exclude_pat) if clean else []
        # What is in a directory that a file replaces goes with it.
        files = {f"{given['name']}/{relative}" for relative in tree.files}
        gone = [path for path in gone if files.isdisjoint(map(str, Path(path).parents))]
    except (Refused, HostError, InvocationError) as error:
        return Plan.failed(str(error))
    return _joined(ctx, name, parts, gone, Attributes(user, group))


def _in_place_of(ctx: Context, path: str, would: str, make: Callable[[], Plan]) -> Plan:
    """Return the plan that removes what is at a path and then does what ``make`` plans; ``would`` is the comment in test
    mode. Its changes are not predicted, as in Salt.
    """

    def work() -> Outcome:
        managed_file.remove(ctx.host.path(path, follow=False))
        return _done(make())

    return Plan.change(would, [step(f"replace {path}", work)])


def _done_late(make: Callable[[], Plan]) -> Outcome:
    """Call ``make``, perform the steps of the plan that it returns, and return their Outcome (comment, changes,
    success).
    """
    return _done(make())


def _done(plan: Plan) -> Outcome:
    """Perform the steps of a plan up to the first that fails. Return one Outcome (comment, changes, success) with the
    changes of all performed steps.
    """
    changes: dict[str, object] = {}
    for one in plan.steps:
        outcome = one.run()
        changes.update(outcome.changes)
        if not outcome.ok:
            return Outcome(outcome.comment, changes, ok=False)
    return Outcome("" if plan.result else plan.comment, changes, ok=plan.result)


def _parts(ctx: Context, tree: Tree, given: Mapping[str, Any]) -> Iterator[tuple[str, Plan]]:
    """Yield (host path, plan) of the directory that ``file.recurse`` manages, of each directory and file in it, and of
    each link. With ``clean``, a directory replaces a file, and a file a directory.
    """
    top = given["name"]
    replaced: list[str] = []
    clean = given["clean"]
    owner = {"user": given["user"], "group": given["group"]}
    dirs = {"dir_mode": given["dir_mode"], "makedirs": True, **owner}
    yield top, directory(ctx, top, **dirs)
    for relative in (*tree.dirs, *(tree.empty if given["include_empty"] else ())):
        path = f"{top}/{relative}"
        place = ctx.host.path(path)
        if clean and place.exists() and not place.is_dir():
            make = partial(directory, ctx, path, **dirs)
            yield path, _in_place_of(ctx, path, f"Replacing {path} with a directory", make)
            replaced.append(f"{path}/")
        else:
            yield path, directory(ctx, path, **dirs)
    shared = (
        "dir_mode",
        "template",
        "context",
        "defaults",
        "replace",
        "backup",
        "show_changes",
        "follow_symlinks",
        "keep_source",
    )
    files = {**given["kwargs"], **{name: given[name] for name in shared}, "makedirs": True, **owner}
    files["mode"] = given["file_mode"] if given["file_mode"] is not None else "0644"
    for relative, source in tree.files.items():
        path = f"{top}/{relative}"
        manage = partial(managed, ctx, path, source=source, **files)
        if path.startswith(tuple(replaced)):
            # Its directory is a file as yet.
            would = f"The file {path} is set to be changed\n{NOTE}"
            write = step(f"write {path}", partial(_done_late, manage))
            yield path, Plan.change(would, [write], {"newfile": path})
        elif clean and given["replace"] and ctx.host.path(path).is_dir():
            yield path, _in_place_of(ctx, path, f"Replacing directory {path} with a file", manage)
        else:
            yield path, manage()
    for relative, target in tree.links.items():
        forced, mode = given["force_symlinks"], given["sym_mode"]
        link = symlink(ctx, f"{top}/{relative}", target, force=forced, makedirs=True, mode=mode, **owner)
        yield f"{top}/{relative}", link


def _joined(ctx: Context, name: str, parts: Mapping[str, Plan], gone: list[str], owner: Attributes) -> Plan:
    """Return one plan for the plans of all paths that ``file.recurse`` manages; its changes map each path to that
    path's changes.
    """
    failed = {path: plan.comment for path, plan in parts.items() if not plan.steps and not plan.result}
    if failed:
        return Plan.failed("\n".join(f"#### {path} ####\n{why}" for path, why in failed.items()))
    changing = {path: plan for path, plan in parts.items() if plan.steps}
    if not changing and not gone:
        return Plan.unchanged(f"The directory {name} is in the correct state")
    changes: dict[str, object] = {path: dict(plan.changes) for path, plan in changing.items() if plan.changes}
    lines = [f"#### {path} ####\n{plan.comment}" for path, plan in changing.items()]
    steps = [step("check that owner and group exist", lambda: _known(ctx, owner))]
    for path, plan in changing.items():
        steps += _nested(path, plan)
    if gone:
        changes["removed"] = gone
        lines.append("\n".join(["#### removed ####", *gone]))
        steps.append(step(f"remove entries that are not in the tree from {name}", lambda: _cleared(ctx, gone)))
    steps.append(Step("report the result", lambda: Outcome(f"Recursively updated {name}")))
    return Plan.change("\n\n".join(lines), steps, changes)


def _known(ctx: Context, owner: Attributes) -> Outcome:
    managed_file.check_owner(ctx.host, owner)
    return Outcome()


def _nested(path: str, plan: Plan) -> Iterator[Step]:
    """Yield the steps of one path's plan, changed so that their changes are reported under this path.

    Each step also reports the changes of the steps before it.
    """
    reported: dict[str, object] = {}

    def work(one: Step) -> Outcome:
        try:
            outcome = one.run()
        except StatecoreError as error:
            raise StateFailure(f"#### {path} ####\n{error}") from error
        reported.update(outcome.changes)
        comment = "" if outcome.ok else f"#### {path} ####\n{outcome.comment}"
        return Outcome(comment, {path: dict(reported)} if reported else {}, outcome.ok)

    for one in plan.steps:
        yield Step(one.what, partial(work, one), one.file)


def _cleared(ctx: Context, gone: list[str]) -> Outcome:
    removed = []
    for path in gone:
        place = ctx.host.path(path, follow=False)
        # Entries below a removed directory are already gone.
        if lexists(place):
            managed_file.remove(place)
            removed.append(path)
    return Outcome("", {"removed": removed})
