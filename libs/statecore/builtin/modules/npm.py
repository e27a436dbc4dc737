"""Packages of Node.js through the host's ``npm``: Salt's ``npm`` execution module.

In all functions ``dir`` is the directory of a project (without it, packages are global), ``runas`` the user who runs npm,
and ``env`` a map of environment variables. Functions raise CommandError with npm's error output.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from statecore.model.context import Context
from statecore.model.errors import CallFailed, CommandError, InvocationError
from statecore.model.text_lines import lines_of

ALIASES = {"list": "list_"}


def available(ctx: Context) -> str | None:
    """Return None if the host has the program ``npm``; else return the reason as text."""
    return None if ctx.host.which("npm") else "the host has no program npm"


def install(
    ctx: Context,
    pkg: str | None = None,
    pkgs: Sequence[str] | None = None,
    dir: str | None = None,
    runas: str | None = None,
    registry: str | None = None,
    env: Mapping[str, str] | None = None,
    dry_run: bool = False,
    silent: bool = True,
) -> object:
    """Install packages of Node.js, or without a package those that the project's package.json names. Return the data
    of npm's JSON output, or the output as text if it has no JSON.

    pkg, pkgs
        name of a package, or a list of names; ``name@version`` for a version
    registry
        URL of the registry
    dry_run
        True: only show what would be installed
    silent
        False: npm shows its messages

    CLI Example:

        salt '*' npm.install coffee-script@1.0.1
    """
    words = ["install", "--json", *(["--silent"] if silent else []), *([] if dir else ["--global"])]
    words += [f"--registry={registry}"] if registry else []
    words += ["--dry-run"] if dry_run else []
    done = _npm(ctx, [*words, *([pkg] if pkg else pkgs or [])], runas, env, cwd=dir or "/tmp")
    if done["retcode"]:
        raise CommandError(str(done["stderr"]))
    output = str(done["stdout"] or done["stderr"])
    found = _json_in(output)
    return output if found is None else found


def uninstall(
    ctx: Context, pkg: str, dir: str | None = None, runas: str | None = None, env: Mapping[str, str] | None = None
) -> bool:
    """Remove a package of Node.js. Return True. If npm fails, jobs and templates get False, and states a
    CommandError.

    CLI Example:

        salt '*' npm.uninstall coffee-script
    """
    done = _npm(ctx, ["uninstall", pkg, *([] if dir else ["--global"])], runas, env, cwd=dir)
    if done["retcode"]:
        raise CallFailed(str(done["stderr"]))
    return True


def list_(
    ctx: Context,
    pkg: str | None = None,
    dir: str | None = None,
    runas: str | None = None,
    env: Mapping[str, str] | None = None,
    depth: float | None = None,
) -> dict[str, object]:
    """Return a map of each installed package of Node.js to its data, such as ``version``; {} if none is installed.

    pkg
        only this package, and those that need it
    depth
        number of levels of the tree of packages that is shown

    CLI Example:

        salt '*' npm.list
    """
    words = ["list", "--json", "--silent", *([] if dir else ["--global"])]
    if depth is not None:
        if isinstance(depth, bool) or not isinstance(depth, int | float):
            raise InvocationError(f"Error: depth {depth} must be a number")
        words.append(f"--depth={int(depth)}")
    # npm's exit code is not 0 if a package is missing; the list is complete all the same.
    done = _npm(ctx, [*words, *([pkg] if pkg else [])], runas, env, cwd=dir, ignore_retcode=True)
    if done["retcode"] and done["stderr"]:
        raise CommandError(str(done["stderr"]))
    try:
        data = json.loads(str(done["stdout"]) or "{}")
    except ValueError as error:
        raise CommandError(f"npm list: its output is not JSON: {error}") from error
    return dict(data.get("dependencies") or {})


def cache_clean(
    ctx: Context,
    path: str | None = None,
    runas: str | None = None,
    env: Mapping[str, str] | None = None,
    force: bool = False,
) -> bool:
    """Delete npm's cache. Return True. If npm fails, jobs and templates get False, and states a CommandError.

    path
        only this part of the cache
    force
        True: pass ``--force``, without which npm 5 and newer refuse

    CLI Example:

        salt '*' npm.cache_clean force=True
    """
    words = ["cache", "clean", *([path] if path else []), *(["--force"] if force is True else [])]
    done = _npm(ctx, words, runas, env, ignore_retcode=True)
    if done["retcode"]:
        raise CallFailed(str(done["stderr"]))
    return True


def cache_list(
    ctx: Context, path: str | None = None, runas: str | None = None, env: Mapping[str, str] | None = None
) -> str:
    """Return the text of ``npm cache ls``: the content of npm's cache, or with ``path`` of a part of it.

    CLI Example:

        salt '*' npm.cache_list
    """
    done = _npm(ctx, ["cache", "ls", *([path] if path else [])], runas, env, ignore_retcode=True)
    if done["retcode"] and done["stderr"]:
        raise CommandError(str(done["stderr"]))
    return str(done["stdout"])


def cache_path(ctx: Context, runas: str | None = None, env: Mapping[str, str] | None = None) -> str:
    """Return the path of the directory with npm's cache.

    CLI Example:

        salt '*' npm.cache_path
    """
    done = _npm(ctx, ["config", "get", "cache"], runas, env, ignore_retcode=True)
    return str(done["stdout"] or done["stderr"])


def _npm(
    ctx: Context, words: Sequence[str], runas: str | None, env: Mapping[str, str] | None, **options: object
) -> dict[str, object]:
    """Run npm, and return the map of ``cmd.run_all``: pid, retcode, stdout, stderr. A failure is not raised."""
    variables = dict(env or {})
    if runas and (uid := ctx.host.uid(runas)):
        # npm gives up root's rights for the user of these variables.
        variables |= {"SUDO_UID": str(uid), "SUDO_USER": ""}
    given = {"runas": runas, "env": variables, "python_shell": False, **options}
    done: dict[str, object] = ctx.call("cmd.run_all", ["npm", *words], **given)
    return done


def _json_in(text: str) -> object:
    """Return the data of the first JSON map or list in a text, also after other lines; None if there is none."""
    lines = lines_of(text)
    for number, line in enumerate(lines):
        if line.lstrip().startswith(("{", "[")):
            try:
                found: object = json.loads("\n".join(lines[number:]))
            except ValueError:
                continue
            return found
    return None
