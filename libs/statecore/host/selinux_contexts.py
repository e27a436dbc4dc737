"""SELinux contexts of files, with the host's own programs: ``stat`` reads, ``semanage`` stores, ``chcon`` sets a
context.

A context set by chcon alone is lost at the next relabelling, so it is also stored in the policy, as Salt does.

Salt: salt/modules/file.py, set_selinux_context; salt/modules/selinux.py, fcontext_add_policy
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from statecore.model.errors import HostError, InvocationError
from statecore.model.ports import ManagedHost
from statecore.model.text_lines import lines_of

#: Argument -> name in messages, option of chcon, option of semanage (which stores no role).
_PARTS: Mapping[str, tuple[str, str, str]] = {
    "seuser": ("User", "-u", "--seuser"),
    "serole": ("Role", "-r", ""),
    "setype": ("Type", "-t", "--type"),
    "serange": ("Range", "-l", "--range"),
}

#: Special characters in the regular expressions of a policy.
_SPECIAL = re.compile(r"([.^$?*+|()\[\]{}\\])")


class SecurityContext(NamedTuple):
    """An SELinux context of a file (user, role, type, range), or a wanted one; "" keeps the current part."""

    seuser: str = ""
    serole: str = ""
    setype: str = ""
    serange: str = ""

    def __str__(self) -> str:
        return ":".join(self)


def wanted(argument: object) -> SecurityContext | None:
    """Return the SELinux context in a state's argument ``selinux``: a map of seuser, serole, setype, serange.

    None if the argument is empty. Raises InvocationError for other keys.
    """
    parts = argument if isinstance(argument, list) else [argument or {}]
    maps = [part for part in parts if isinstance(part, Mapping)]
    if len(maps) != len(parts):
        raise InvocationError(f"selinux is a map of {', '.join(_PARTS)}, not {argument!r}")
    given = {str(key): str(value) for part in maps for key, value in part.items() if value}
    if unknown := sorted(given.keys() - _PARTS.keys()):
        raise InvocationError(f"selinux has no {', '.join(unknown)}; it has {', '.join(_PARTS)}")
    return SecurityContext(**given) if given else None


def read(host: ManagedHost, name: str) -> SecurityContext:
    """Return the SELinux context of a file of the host. Raises HostError, also on a host without SELinux."""
    result = host.run(["stat", "-c", "%C", name])
    parts = result.stdout.strip().split(":", 3)
    if result.retcode:
        raise HostError(f"Failed to get selinux attributes of {name}: {result.stderr.strip()}")
    if len(parts) != len(_PARTS):
        raise HostError(f"Failed to get selinux attributes of {name}: the host has no SELinux")
    return SecurityContext(*parts)


def difference(found: SecurityContext, demanded: SecurityContext) -> SecurityContext:
    """Return the parts of the wanted SELinux context that differ from the current one; "" for equal parts."""
    pairs = zip(found, demanded, strict=True)
    return SecurityContext(*(want if want != have else "" for have, want in pairs))


def reported_change(found: SecurityContext, todo: SecurityContext) -> dict[str, str]:
    """Return the change of a file's SELinux context in Salt's format: a map with the keys "Old" and "New"."""

    def shown(context: SecurityContext) -> str:
        words = zip(_PARTS.values(), context, todo, strict=True)
        return " ".join(f"{word[0]}: {value}" for word, value, set_ in words if set_)

    return {"Old": shown(found), "New": shown(todo)}


def change(
    host: ManagedHost, name: str, found: SecurityContext, todo: SecurityContext, *, persist: bool = True
) -> None:
    """Set parts of the SELinux context of a file; if ``persist`` is True, also store them in the policy.

    The context is read again afterwards. Raises HostError if it is not the wanted one.
    """
    # Both programs require the type with every other part.
    full = todo._replace(setype=todo.setype or found.setype)
    for program in ("semanage", "chcon") if persist else ("chcon",):
        if host.which(program) is None:
            raise HostError(f"Failed to set selinux attributes of {name}: the host has no program {program}")
    rows = list(zip(_PARTS.values(), full, strict=True))
    commands = [["chcon", *(word for (_, option, _), value in rows if value for word in (option, value)), name]]
    if persist:
        pattern = _SPECIAL.sub(r"\\\1", name)
        listed = host.run(["semanage", "fcontext", "--list"])
        known = any(line.split(None, 1)[:1] == [pattern] for line in lines_of(listed.stdout))
        kept = [word for (_, _, option), value in rows if value and option for word in (option, value)]
        commands.insert(0, ["semanage", "fcontext", "--modify" if known else "--add", *kept, pattern])
    for command in commands:
        done = host.run(command)
        if done.retcode:
            output = (done.stderr or done.stdout).strip()
            raise HostError(f"Failed to set selinux attributes of {name}: {command[0]}: {output}")
    left = difference(read(host, name), todo)
    if any(left):
        words = [argument for argument, value in zip(_PARTS, left, strict=True) if value]
        raise HostError(f"{name}: Unable to update {', '.join(words)} context")
