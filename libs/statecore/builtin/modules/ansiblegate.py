"""Ansible on the host, through its programs: Salt's ``ansible`` execution module.

Modules of Ansible are called by ``ansible.call``; they are no functions of their own.
"""

from __future__ import annotations

import fnmatch
import json
import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError

VIRTUAL = "ansible"
ALIASES = {"list": "list_"}

#: Seconds that a module of Ansible may take (option ``ansible_timeout``).
_TIMEOUT = 1200

_ENVIRONMENT = {"ANSIBLE_DEPRECATION_WARNINGS": "0"}


def available(ctx: Context) -> str | None:
    """Return None if the host has Ansible's programs; else return the reason as text."""
    missing = [name for name in ("ansible", "ansible-doc", "ansible-playbook") if ctx.host.which(name) is None]
    return f"the host has no program {missing[0]}: install Ansible there" if missing else None


def list_(ctx: Context, pattern: str | None = None) -> list[str]:
    """Return the sorted names of Ansible's modules. A module of ``ansible.builtin`` is listed twice: with this
    prefix and without.

    pattern
        glob that the names must match

    CLI Example:

        salt '*' ansible.list '*win*'
    """
    listing = _json(_checked(ctx, ["ansible-doc", "--list", "--json", "--type=module"]))
    names = {short for name in listing for short in (name, name.removeprefix("ansible.builtin."))}
    return sorted(fnmatch.filter(names, pattern) if pattern else names)


def help(ctx: Context, module: str | None = None, *args: str) -> dict[str, Any]:
    """Return the documentation of a module of Ansible as a map; with ``args`` only these sections: ``doc``,
    ``examples``, ``return``, ``metadata``. Raise CommandError if ansible-doc fails.

    CLI Example:

        salt '*' ansible.help ping
    """
    if not module:
        raise CommandError(
            'Please tell me what module you want to have helped with. Or call "ansible.list" to know what is available.'
        )
    if module.startswith("-"):
        raise InvocationError(f"{module}: no name of a module")
    data = _json(_checked(ctx, ["ansible-doc", "--json", "--type=module", module]))
    doc: dict[str, Any] = next(iter(data.values()), {})
    if args:
        return {name: doc[name] for name in args if doc.get(name) is not None}
    return {**doc.get("doc", {}), **{name: doc[name] for name in ("examples", "return", "metadata") if doc.get(name)}}


def call(ctx: Context, module: str, *args: object, **kwargs: object) -> dict[str, Any]:
    """Call a module of Ansible on this host. Return the map that the module returns, without its keys ``invocation``
    and ``changed``; ``{"output": text}`` of a module that returns text; a map with ``Exitcode``, ``Error`` and
    ``Given JSON output`` if the module fails.

    CLI Example:

        salt '*' ansible.call ping data=foobar
    """
    given = {key: value for key, value in kwargs.items() if not key.startswith("__")}
    words = [*(json.dumps(each) for each in args), *(f"{key}={json.dumps(value)}" for key, value in given.items())]
    # A host that an inventory names is reached by ssh. Without one, localhost is this host, with Ansible's own Python.
    command = ["ansible", "localhost", "-i", "/dev/null", "-m", module, "-a", " ".join(words)]
    result = ctx.call(
        "cmd.run_all",
        command,
        python_shell=False,
        env=_ENVIRONMENT,
        timeout=ctx.opts.get("ansible_timeout") or _TIMEOUT,
        ignore_retcode=True,
    )
    output, error = str(result["stdout"]), str(result["stderr"])
    if result["retcode"]:
        failed: dict[str, Any] = {
            "Exitcode": result["retcode"],
            "Error": error or f"ansible ended with {result['retcode']}",
        }
        return failed | ({"Given JSON output": output} if output else {})
    first, _, rest = output.partition("\n")
    if first.endswith("{"):
        try:
            answer: dict[str, Any] = json.loads("{" + rest)
        except ValueError as wrong:
            return {"Error": error or str(wrong), "Output": output}
        return {key: value for key, value in answer.items() if key not in ("invocation", "changed")}
    return {"output": rest if first.endswith(">>") else output}


def playbooks(
    ctx: Context,
    playbook: str,
    rundir: str | None = None,
    check: bool = False,
    diff: bool = False,
    extra_vars: object = None,
    flush_cache: bool = False,
    forks: int = 5,
    inventory: str | None = None,
    limit: str | None = None,
    list_hosts: bool = False,
    list_tags: bool = False,
    list_tasks: bool = False,
    module_path: str | None = None,
    skip_tags: str | None = None,
    start_at_task: str | None = None,
    syntax_check: bool = False,
    tags: str | None = None,
    playbook_kwargs: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """Run a playbook of Ansible on the host. Return the map that Ansible's callback ``json`` prints (``plays``,
    ``stats``), with ``retcode``; if the output is no JSON, a map with pid, retcode, stdout and stderr of
    ansible-playbook.

    rundir
        directory in which to run
    check, diff
        True: only predict changes; show differences
    extra_vars
        map of variables, or ``@`` and the path of a file of variables
    playbook_kwargs
        map of further options of ansible-playbook to their values

    CLI Example:

        salt '*' ansible.playbooks playbook=/srv/playbooks/play.yml
    """
    flags = {
        "--check": check,
        "--diff": diff,
        "--flush-cache": flush_cache,
        "--list-hosts": list_hosts,
        "--list-tags": list_tags,
        "--list-tasks": list_tasks,
        "--syntax-check": syntax_check,
    }
    values = {
        "--inventory": inventory,
        "--limit": limit,
        "--module-path": module_path,
        "--skip-tags": skip_tags,
        "--start-at-task": start_at_task,
        "--tags": tags,
        "--forks": forks,
    }
    words = [flag for flag, wanted in flags.items() if wanted]
    words += [f"{option}={value}" for option, value in values.items() if value]
    if isinstance(extra_vars, Mapping):
        words.append(f"--extra-vars={json.dumps(extra_vars)}")
    elif isinstance(extra_vars, str) and extra_vars.startswith("@"):
        words.append(f"--extra-vars={extra_vars}")
    for key, value in (playbook_kwargs or {}).items():
        option = f"--{key.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif isinstance(value, str | Mapping):
            words.append(f"{option}={value if isinstance(value, str) else json.dumps(value)}")
    env = _ENVIRONMENT | {"ANSIBLE_STDOUT_CALLBACK": "json", "ANSIBLE_RETRY_FILES_ENABLED": "0"}
    result = ctx.call(
        "cmd.run_all",
        ["ansible-playbook", playbook, *words],
        python_shell=False,
        cwd=rundir,
        env=env,
        ignore_retcode=True,
    )
    try:
        answer: dict[str, Any] = json.loads(str(result["stdout"]))
    except ValueError:
        answer = dict(result)
    ctx.scratch["retcode"] = answer["retcode"] = result["retcode"]
    return answer


def targets(
    ctx: Context,
    inventory: str | None = None,
    inventories: Sequence[str] | None = None,
    yaml: bool = False,
    export: bool = False,
) -> Any:
    """Return the hosts and groups of an Ansible inventory (default /etc/ansible/hosts) as the map that
    ansible-inventory lists; with ``inventories``, a map of each path to such a map. Raise CommandError for a
    missing inventory.

    yaml
        True: return YAML text
    export
        True: list variables as they are written

    CLI Example:

        salt '*' ansible.targets inventory=/srv/inventory
    """
    if inventories:
        return {name: targets(ctx, name, None, yaml, export) for name in inventories}
    path = inventory or "/etc/ansible/hosts"
    if not ctx.host.path(path).exists():
        raise CommandError(f"Ansible inventory file not found: {path}")
    words = [
        "ansible-inventory",
        "-i",
        path,
        "--list",
        *(["--yaml"] if yaml else []),
        *(["--export"] if export else []),
    ]
    output = _checked(ctx, words)
    return output if yaml else _json(output)


def discover_playbooks(
    ctx: Context,
    path: str | None = None,
    locations: Sequence[str] | None = None,
    playbook_extension: object = None,
    hosts_filename: str | None = None,
    syntax_check: bool = False,
) -> dict[str, dict[str, dict[str, str]]]:
    """Return the Ansible playbooks in a directory and its direct subdirectories: a map of directory to a map of
    relative path to ``fullpath`` and, if there is an inventory beside the playbook, ``custom_inventory``.

    locations
        list of directories, in place of ``path``
    playbook_extension, hosts_filename
        suffix or list of suffixes of playbooks (.yml, .yaml); name of inventories (hosts)
    syntax_check
        True: leave out playbooks that Ansible cannot parse

    CLI Example:

        salt '*' ansible.discover_playbooks path=/srv/playbooks
    """
    if not path and not locations:
        raise CommandError("You have to specify either 'path' or 'locations' arguments")
    if path and locations:
        raise CommandError("You cannot specify 'path' and 'locations' at the same time")
    if path and not path.startswith("/"):
        raise CommandError(f"The given path is not an absolute path: {path}")
    if path and not ctx.host.path(path).is_dir():
        raise CommandError(f"The given path is not a directory: {path}")
    given = playbook_extension or (".yml", ".yaml")
    suffixes = (given,) if isinstance(given, str) else tuple(map(str, given)) if isinstance(given, list | tuple) else ()
    found = {}
    for place in [path] if path else locations or ():
        books = _playbooks(ctx, str(place), suffixes, hosts_filename or "hosts")
        if syntax_check:
            books = {
                name: book
                for name, book in books.items()
                if not ctx.call(
                    "cmd.retcode", ["ansible-playbook", "--syntax-check", book["fullpath"]], python_shell=False
                )
            }
        found[str(place)] = books
    return found


def _playbooks(ctx: Context, place: str, suffixes: tuple[str, ...], hosts: str) -> dict[str, dict[str, str]]:
    if not place.startswith("/") or not ctx.host.path(place).is_dir():
        return {}
    below = sorted(each.name for each in ctx.host.path(place).iterdir() if each.is_dir())
    found = {}
    for inner in ("", *below):
        directory = posixpath.join(place, inner).rstrip("/")
        for each in sorted(ctx.host.path(directory).iterdir(), key=lambda each: each.name):
            if each.is_file() and each.name.endswith(suffixes):
                book = {"fullpath": f"{directory}/{each.name}"}
                if ctx.host.path(f"{directory}/{hosts}").is_file():
                    book["custom_inventory"] = f"{directory}/{hosts}"
                found[posixpath.join(inner, each.name)] = book
    return found


def _checked(ctx: Context, words: Sequence[str]) -> str:
    result = ctx.call("cmd.run_all", list(words), python_shell=False, env=_ENVIRONMENT, ignore_retcode=True)
    if result["retcode"]:
        raise CommandError(f"{words[0]} failed: {result['stderr'] or result['stdout']}")
    return str(result["stdout"])


def _json(text: str) -> dict[str, Any]:
    try:
        data: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise CommandError(f"Ansible's answer is no JSON: {error}") from error
    return data
