"""Functions of ``pkg`` that hold packages on a host with zypper: zypper's locks."""

from __future__ import annotations

import fnmatch
import re

from statecore.builtin.modules.pkg_rpm import inventory
from statecore.builtin.modules.pkg_zypper import zypper
from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError
from statecore.model.text_lines import lines_of

_FILE = "/etc/zypp/locks"


def list_locks(ctx: Context, root: str | None = None) -> dict[str, dict[str, str]]:
    """Return zypper's locks: a map of package (or glob of packages) to a map of type, match_type, case_sensitive and, if one
    version is locked, version.

    CLI Example:

        salt '*' pkg.list_locks
    """
    name = f"{(root or '').rstrip('/')}{_FILE}"
    try:
        text = ctx.host.path(name).read_text("utf-8", "replace")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise HostError(f"{name} cannot be read: {error.strerror}") from error
    return parse(text)


def parse(text: str) -> dict[str, dict[str, str]]:
    """Parse the text of zypper's file of locks, whose entries are separated by empty lines: a map of package to the other
    lines of its entry.
    """
    found = {}
    for entry in text.split("\n\n"):
        pairs = (line.partition(":") for line in lines_of(entry) if ":" in line)
        lock = {key.strip(): value.strip() for key, _, value in pairs}
        if name := lock.pop("solvable_name", ""):
            found[name] = lock
    return found


def list_holds(
    ctx: Context, pattern: str | None = None, full: bool = True, root: str | None = None, **kwargs: object
) -> list[str]:
    """Return the installed packages that zypper's locks hold, with their versions (``bash-0:5.1.8-6.*``); with ``full=False``
    the names alone.

    pattern
        regular expression for the names

    CLI Example:

        salt '*' pkg.list_holds full=False
    """
    expression = re.compile(rf"{pattern}-\S+") if pattern else None
    packages = inventory.packages(ctx)
    found: list[str] = []
    for locked, lock in list_locks(ctx, root).items():
        if lock.get("type", "package") != "package":
            continue
        same = fnmatch.fnmatchcase if lock.get("case_sensitive", "on") == "on" else fnmatch.fnmatch
        for name in (each for each in packages if same(each, locked)):
            for package in packages[name]:
                text = f"{name}-{package.epoch or 0}:{package.plain_version}.*" if full else name
                if text not in found and (expression is None or expression.match(text)):
                    found.append(text)
    return found


def hold(
    ctx: Context, name: str | None = None, pkgs: object = None, root: str | None = None, **kwargs: object
) -> dict[str, dict[str, object]]:
    """Hold packages with zypper's locks, so that zypper does not change them. Return a map of package to a map with name,
    changes, result and comment.

    pkgs
        a list of names and of maps from a name to the version that is held

    CLI Example:

        salt '*' pkg.hold pkgs='["nginx", {"curl": "8.2-1"}]'
    """
    known = list_locks(ctx, root)
    answers: dict[str, dict[str, object]] = {}
    added = []
    for target, version in _targets(name, pkgs):
        done = target not in known
        if done:
            added.append(f"{target}={version}" if version else target)
        comment = f"Package {target} is {'now being' if done else 'already set to be'} held."
        changes = {"new": "hold", "old": ""} if done else {}
        answers[target] = {"name": target, "changes": changes, "result": True, "comment": comment}
    if added:
        zypper.order(ctx, "al", *added, root=root)
    return answers


def unhold(
    ctx: Context, name: str | None = None, pkgs: object = None, root: str | None = None, **kwargs: object
) -> dict[str, dict[str, object]]:
    """Remove zypper's locks of packages. Return a map of package to a map with name, changes, result and comment. A lock of
    another version than the given one is not removed.

    CLI Example:

        salt '*' pkg.unhold nginx
    """
    known = list_locks(ctx, root)
    answers: dict[str, dict[str, object]] = {}
    removed = []
    for target, version in _targets(name, pkgs):
        answer: dict[str, object] = {"name": target, "changes": {}, "result": True}
        locked = known.get(target)
        held = locked.get("version", "").lstrip("= ") if locked is not None else ""
        if locked is None:
            answer["comment"] = f"Package {target} was already unheld."
        elif version and held != version:
            answer |= {"result": False}
            answer["comment"] = f"Unable to unhold package {target} as it is held with the other version."
        else:
            removed.append(f"{target}={held}" if held else target)
            answer |= {"changes": {"new": "", "old": "hold"}, "comment": f"Package {target} is no longer held."}
        answers[target] = answer
    if removed:
        zypper.order(ctx, "rl", *removed, root=root)
    return answers


def clean_locks(ctx: Context, root: str | None = None) -> dict[str, object]:
    """Remove zypper's locks that lock no package of the repositories. Return {"removed": their number}.

    CLI Example:

        salt '*' pkg.clean_locks
    """
    if not ctx.host.path(f"{(root or '').rstrip('/')}{_FILE}").exists():
        return {"removed": 0}
    for message in zypper.order_xml(ctx, "cl", root=root).iter("message"):
        words = (message.text or "").lower().split()
        if words[:1] == ["removed"] and len(words) > 1:
            return {"removed": words[1]}
    return {"removed": 0}


def _targets(name: str | None, pkgs: object) -> list[tuple[str, str | None]]:
    """Return the packages of the arguments ``name`` and ``pkgs`` with the versions that are held."""
    if not name and not pkgs:
        raise CommandError("Name or packages must be specified.")
    listed = list(pkgs) if isinstance(pkgs, list | tuple) and pkgs else [name]
    pairs = [next(iter(each.items())) if isinstance(each, dict) else (each, None) for each in listed]
    return [(str(package), str(version) if version else None) for package, version in pairs]
