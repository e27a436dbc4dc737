"""Arguments that a state function does not know: ignored with a warning, as Salt ignores them, or a fault of the state.

Source: docs/state-system.md#unknown-arguments
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from statecore.engine.arguments import Arguments, bind
from statecore.loader.arguments import Parameters
from statecore.loader.ignored_arguments import ignores_unknown, read_as
from statecore.loader.loaded_module import LoadedModule
from statecore.model.errors import Mark
from statecore.model.types import Low

#: Option that decides whether an unknown argument of a state is a warning or an error, and its values.
OPTION = "state_unknown_arguments"
WARN, ERROR = "warn", "error"

#: Arguments that say whose rights a process has, or who may read and write what a state leaves behind.
_RIGHTS = frozenset(
    {"user", "runas", "run_as", "owner", "group", "mode", "file_mode", "dir_mode", "perms", "permissions", "chmod"}
    | {"chown", "umask", "attrs", "acl", "seuser", "setype", "selinux", "root", "chroot", "sudo", "password"}
)

#: State modules whose functions run programs of the user's choice.
_RUNNING = frozenset({"cmd", "module", "git", "pip", "virtualenv", "salt"})


def bound(low: Low, served: LoadedModule, function: str) -> Arguments:
    """Return the Arguments with which the state function ``function`` of the module ``served`` is called for a low
    chunk, as ``arguments.bind`` does.

    ``mod_watch`` gets the arguments that the declared state function takes. An undocumented argument name that Salt
    accepts is replaced by the documented name.
    """
    parameters = served.parameters(function)
    if not served.native:
        return bind(low, parameters)
    declared = declared_function(low)
    meant = {name: real for name, real in read_as(declared).items() if name in low and name not in parameters.named}
    renamed = {real: low[name] for name, real in meant.items() if low.get(real) is None}
    arguments = bind({**low, **renamed} if renamed else low, _of_declared(low, served, function, parameters))
    if not meant:
        return arguments
    return arguments._replace(unknown={**(arguments.unknown or {}), **meant})


def declared_function(low: Low) -> str:
    """Return the state function that the user declared, such as "service.running", also for the chunk of a mod_watch."""
    return f"{low['state']}.{low.get('sfun') or low['fun'] if low['fun'] == 'mod_watch' else low['fun']}"


def _of_declared(low: Low, served: LoadedModule, function: str, parameters: Parameters) -> Parameters:
    declared = str(low.get("sfun", ""))
    if function != "mod_watch" or not parameters.takes_any or declared not in served.functions:
        return parameters
    own = served.parameters(declared)
    if own.takes_any and own.options is None:
        return parameters
    return parameters._replace(options=frozenset({*own.named, *(own.options or ()), *(parameters.options or ())}))


def are_ignored(low: Low, served: LoadedModule, opts: Mapping[str, object]) -> bool:
    """Return True if a chunk's unknown arguments only cause warnings: Salt's function ignores them, and no option
    (``state_unknown_arguments``) makes them errors.
    """
    return served.native and opts.get(OPTION, WARN) != ERROR and ignores_unknown(declared_function(low))


def warnings(low: Low, arguments: Arguments, locate: Callable[[Low, str], Mark | None]) -> list[str]:
    """Return one sentence for each ignored unknown argument of a chunk: its file and line, its name, and the most
    similar known name.
    """
    function = declared_function(low)
    meant = read_as(function)
    found = []
    for name, near in (arguments.unknown or {}).items():
        mark = locate(low, name)
        place = f"{mark}: " if mark is not None else ""
        if name in meant:
            what = f"it counts as '{meant[name]}'; write '{meant[name]}'"
            if low.get(meant[name]) is not None:
                what = f"it is ignored, because '{meant[name]}' is given"
            found.append(f"{place}'{name}' is not an argument of {function}: {what}")
            continue
        hint = f". The nearest argument is '{near}'" if near else ""
        found.append(
            f"{place}'{name}' is not an argument of {function} and is ignored{danger(function, name, near)}{hint}"
        )
    return found


def danger(function: str, name: str, near: str) -> str:
    """Return a clause, to be put after "is ignored", that warns of the danger of ignoring this argument of a state
    function.

    "" for arguments that do not concern rights (user, mode and similar).
    """
    if name not in _RIGHTS and near not in _RIGHTS:
        return ""
    if function.partition(".")[0] in _RUNNING:
        return (
            ", WHICH IS DANGEROUS: the program runs with the rights that it has without this argument, usually root's"
        )
    return ", WHICH IS DANGEROUS: owner, permissions or access stay as they are without this argument"
