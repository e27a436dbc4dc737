"""Programs that supervisord keeps running on the managed host (Salt's ``supervisord`` module), by its supervisorctl.

A name is a program, ``group:program``, ``group:`` for all of a group, ``all`` for all there are.
"""

from __future__ import annotations

import configparser
import shlex
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError

_PROGRAM = "supervisorctl"

#: Where its configuration is looked for when none is named.
_FILES = ("/etc/supervisor/supervisord.conf", "/etc/supervisord.conf")

_TRUTHS = {"true": True, "false": False}


def start(
    ctx: Context,
    name: str = "all",
    user: str | None = None,
    conf_file: str | None = None,
    bin_env: str | None = None,
) -> str:
    """Starts programs; what supervisorctl says, with ERROR in it when it could not.

    user
        runs supervisorctl as this user
    conf_file
        supervisord's configuration
    bin_env
        supervisorctl, or a virtual environment that has it

    CLI Example:

        salt '*' supervisord.start web
    """
    return _told(ctx, ["start", _members(name)], user, conf_file, bin_env)


def restart(
    ctx: Context,
    name: str = "all",
    user: str | None = None,
    conf_file: str | None = None,
    bin_env: str | None = None,
) -> str:
    """Stops and starts programs. Arguments as for start."""
    return _told(ctx, ["restart", _members(name)], user, conf_file, bin_env)


def stop(
    ctx: Context,
    name: str = "all",
    user: str | None = None,
    conf_file: str | None = None,
    bin_env: str | None = None,
) -> str:
    """Stops programs. Arguments as for start."""
    return _told(ctx, ["stop", _members(name)], user, conf_file, bin_env)


def add(
    ctx: Context, name: str, user: str | None = None, conf_file: str | None = None, bin_env: str | None = None
) -> str:
    """Takes a program or group into what is running, as the configuration that was read last has it."""
    return _told(ctx, ["add", _group(name)], user, conf_file, bin_env)


def remove(
    ctx: Context, name: str, user: str | None = None, conf_file: str | None = None, bin_env: str | None = None
) -> str:
    """Takes a stopped program or group out of what is running."""
    return _told(ctx, ["remove", _group(name)], user, conf_file, bin_env)


def reread(ctx: Context, user: str | None = None, conf_file: str | None = None, bin_env: str | None = None) -> str:
    """Has supervisord read its configuration; nothing is started or stopped. Its lines name what differs.

    CLI Example:

        salt '*' supervisord.reread
    """
    return _told(ctx, ["reread"], user, conf_file, bin_env)


def update(
    ctx: Context,
    user: str | None = None,
    conf_file: str | None = None,
    bin_env: str | None = None,
    name: str | None = None,
) -> str:
    """Reads the configuration and applies it: to all groups, or to one.

    CLI Example:

        salt '*' supervisord.update
    """
    return _told(ctx, ["update", *([_group(name)] if name else [])], user, conf_file, bin_env)


def status(
    ctx: Context,
    name: str | None = None,
    user: str | None = None,
    conf_file: str | None = None,
    bin_env: str | None = None,
) -> dict[str, dict[str, str]]:
    """program -> its state and reason. Raises CommandError where supervisord does not answer.

    CLI Example:

        salt '*' supervisord.status
    """
    text = status_raw(ctx, name, user, conf_file, bin_env)
    found = {}
    for line in text.splitlines():
        words = line.split(None, 2)
        if len(words) < 2 or words[0] in ("unix://", "error:", "ERROR:") or "://" in words[0]:
            raise CommandError(f"supervisord does not answer: {text.strip()}")
        found[words[0]] = {"state": words[1], "reason": words[2] if len(words) > 2 else ""}
    return found


def status_raw(
    ctx: Context,
    name: str | None = None,
    user: str | None = None,
    conf_file: str | None = None,
    bin_env: str | None = None,
) -> str:
    """The table of supervisorctl as it is."""
    words = ["status", *([_members(name)] if name else [])]
    result = _run(ctx, words, user, conf_file, bin_env)
    # Its code tells of programs that do not run, too.
    return str(result["stdout"])


def status_bool(
    ctx: Context,
    name: str,
    expected_state: str | None = None,
    user: str | None = None,
    conf_file: str | None = None,
    bin_env: str | None = None,
) -> bool:
    """Whether there is a program of this name, and in this state where one is named.

    CLI Example:

        salt '*' supervisord.status_bool nginx expected_state=RUNNING
    """
    entry = status(ctx, None, user, conf_file, bin_env).get(name)
    return entry is not None and (expected_state is None or entry["state"] == expected_state)


def custom(
    ctx: Context, command: str, user: str | None = None, conf_file: str | None = None, bin_env: str | None = None
) -> str:
    """Any command of supervisorctl.

    CLI Example:

        salt '*' supervisord.custom "tail web"
    """
    return _told(ctx, shlex.split(command), user, conf_file, bin_env)


def options(ctx: Context, name: str, conf_file: str | None = None) -> dict[str, Any]:
    """The options of a program, as the configuration has them: numbers and truths as such.

    CLI Example:

        salt '*' supervisord.options web
    """
    config = _config(ctx, conf_file)
    section = f"program:{name}"
    if not config.has_section(section):
        raise CommandError(f"Process '{name}' not found")
    return {key: _value(text.partition(";")[0].strip()) for key, text in config.items(section, raw=True)}


# ------------------------------------------------------------------------------------------------------------------------ parts


def _run(
    ctx: Context, words: list[str], user: str | None, conf_file: str | None, bin_env: str | None
) -> dict[str, Any]:
    first = [_binary(ctx, bin_env), *(["-c", conf_file] if conf_file is not None else [])]
    result: dict[str, Any] = ctx.call(
        "cmd.run_all", [*first, *words], runas=user, python_shell=False, redirect_stderr=True, ignore_retcode=True
    )
    return result


def _told(ctx: Context, words: list[str], user: str | None, conf_file: str | None, bin_env: str | None) -> str:
    result = _run(ctx, words, user, conf_file, bin_env)
    said = str(result["stdout"])
    return f"ERROR: {said}" if result["retcode"] and "ERROR" not in said else said


def _binary(ctx: Context, bin_env: str | None) -> str:
    if not bin_env:
        found = ctx.host.which(_PROGRAM)
        if found is None:
            raise CommandError(f"Could not find a `{_PROGRAM}` binary")
        return found
    if not ctx.host.path(bin_env).is_dir():
        return bin_env
    name = f"{bin_env.rstrip('/')}/bin/{_PROGRAM}"
    if not ctx.host.path(name).is_file():
        raise CommandError(f"Could not find a `{_PROGRAM}` binary")
    return name


def _members(name: str) -> str:
    """supervisorctl means a group by ``group:`` as by ``group:*``."""
    return str(name).removesuffix("*") if str(name).endswith(":*") else str(name)


def _group(name: str) -> str:
    return _members(name).removesuffix(":")


def _config(ctx: Context, conf_file: str | None) -> configparser.ConfigParser:
    names = [conf_file] if conf_file is not None else list(_FILES)
    place = next((ctx.host.path(name) for name in names if ctx.host.path(name).is_file()), None)
    if place is None:
        raise CommandError(f"No suitable config file found: there is no {' and no '.join(names)}")
    config = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        config.read_string(place.read_text("utf-8", "replace"), source=conf_file or names[0])
    except configparser.Error as error:
        raise CommandError(f"Unable to read from {conf_file or place}: {error}") from error
    return config


def _value(text: str) -> Any:
    if text.lower() in _TRUTHS:
        return _TRUTHS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
