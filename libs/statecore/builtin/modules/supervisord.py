"""Programs that supervisord runs on the managed host, through its supervisorctl: Salt's ``supervisord`` execution
module.

A name is a program, ``group:program``, ``group:`` for all programs of a group, or ``all`` for all programs.
"""

from __future__ import annotations

import configparser
import shlex

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of

_PROGRAM = "supervisorctl"

#: Default paths of supervisord's configuration.
_FILES = ("/etc/supervisor/supervisord.conf", "/etc/supervisord.conf")

_TRUTHS = {"true": True, "false": False}


def start(
    ctx: Context,
    name: str = "all",
    user: str | None = None,
    conf_file: str | None = None,
    bin_env: str | None = None,
) -> str:
    """Start programs of supervisord. Return supervisorctl's output, which contains ERROR if it failed.

    user
        the user who runs supervisorctl
    conf_file
        supervisord's configuration
    bin_env
        the path of supervisorctl, or of a virtual environment with it

    CLI Example:

        salt '*' supervisord.start web
    """
    return _output(ctx, ["start", _members(name)], user, conf_file, bin_env)


def restart(
    ctx: Context,
    name: str = "all",
    user: str | None = None,
    conf_file: str | None = None,
    bin_env: str | None = None,
) -> str:
    """Stop and start programs of supervisord. The arguments and the result are those of ``supervisord.start``."""
    return _output(ctx, ["restart", _members(name)], user, conf_file, bin_env)


def stop(
    ctx: Context,
    name: str = "all",
    user: str | None = None,
    conf_file: str | None = None,
    bin_env: str | None = None,
) -> str:
    """Stop programs of supervisord. The arguments and the result are those of ``supervisord.start``."""
    return _output(ctx, ["stop", _members(name)], user, conf_file, bin_env)


def add(
    ctx: Context, name: str, user: str | None = None, conf_file: str | None = None, bin_env: str | None = None
) -> str:
    """Add a program or group to those that supervisord runs, with the configuration that supervisord read last. Return
    supervisorctl's output, which contains ERROR if it failed.
    """
    return _output(ctx, ["add", _group(name)], user, conf_file, bin_env)


def remove(
    ctx: Context, name: str, user: str | None = None, conf_file: str | None = None, bin_env: str | None = None
) -> str:
    """Remove a stopped program or group from those that supervisord runs. Return supervisorctl's output, which contains
    ERROR if it failed.
    """
    return _output(ctx, ["remove", _group(name)], user, conf_file, bin_env)


def reread(ctx: Context, user: str | None = None, conf_file: str | None = None, bin_env: str | None = None) -> str:
    """Make supervisord read its configuration without starting or stopping programs. Return supervisorctl's lines with
    the differences.

    CLI Example:

        salt '*' supervisord.reread
    """
    return _output(ctx, ["reread"], user, conf_file, bin_env)


def update(
    ctx: Context,
    user: str | None = None,
    conf_file: str | None = None,
    bin_env: str | None = None,
    name: str | None = None,
) -> str:
    """Make supervisord read its configuration and apply it, to all groups or to one. Return supervisorctl's output,
    which contains ERROR if it failed.

    CLI Example:

        salt '*' supervisord.update
    """
    return _output(ctx, ["update", *([_group(name)] if name else [])], user, conf_file, bin_env)


def status(
    ctx: Context,
    name: str | None = None,
    user: str | None = None,
    conf_file: str | None = None,
    bin_env: str | None = None,
) -> dict[str, dict[str, str]]:
    """Return a map of supervisord's programs to {"state": text, "reason": text}. Raise CommandError if supervisord does
    not answer.

    CLI Example:

        salt '*' supervisord.status
    """
    text = status_raw(ctx, name, user, conf_file, bin_env)
    found = {}
    for line in lines_of(text):
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
    """Return the table of programs that ``supervisorctl status`` prints, unchanged."""
    words = ["status", *([_members(name)] if name else [])]
    result = _run(ctx, words, user, conf_file, bin_env)
    # The exit code is no error: it also means that a program does not run.
    return str(result["stdout"])


def status_bool(
    ctx: Context,
    name: str,
    expected_state: str | None = None,
    user: str | None = None,
    conf_file: str | None = None,
    bin_env: str | None = None,
) -> bool:
    """Return whether supervisord has a program of this name, in the state ``expected_state`` if one is given.

    CLI Example:

        salt '*' supervisord.status_bool nginx expected_state=RUNNING
    """
    entry = status(ctx, None, user, conf_file, bin_env).get(name)
    return entry is not None and (expected_state is None or entry["state"] == expected_state)


def custom(
    ctx: Context, command: str, user: str | None = None, conf_file: str | None = None, bin_env: str | None = None
) -> str:
    """Run any command of supervisorctl. Return supervisorctl's output, which contains ERROR if it failed.

    CLI Example:

        salt '*' supervisord.custom "tail web"
    """
    return _output(ctx, shlex.split(command), user, conf_file, bin_env)


def options(ctx: Context, name: str, conf_file: str | None = None) -> dict[str, object]:
    """Return a map of option to value of a program in supervisord's configuration. Numbers and booleans are converted.
    Raise CommandError for an unknown program.

    CLI Example:

        salt '*' supervisord.options web
    """
    config = _config(ctx, conf_file)
    section = f"program:{name}"
    if not config.has_section(section):
        raise CommandError(f"Process '{name}' not found")
    return {key: _value(text.partition(";")[0].strip()) for key, text in config.items(section, raw=True)}


# ----------------------------------------------------------------------------------------------- helpers


def _run(
    ctx: Context, words: list[str], user: str | None, conf_file: str | None, bin_env: str | None
) -> dict[str, object]:
    first = [_binary(ctx, bin_env), *(["-c", conf_file] if conf_file is not None else [])]
    result: dict[str, object] = ctx.call(
        "cmd.run_all", [*first, *words], runas=user, python_shell=False, redirect_stderr=True, ignore_retcode=True
    )
    return result


def _output(ctx: Context, words: list[str], user: str | None, conf_file: str | None, bin_env: str | None) -> str:
    result = _run(ctx, words, user, conf_file, bin_env)
    output = str(result["stdout"])
    return f"ERROR: {output}" if result["retcode"] and "ERROR" not in output else output


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
    """Return the argument ``name`` of a ``supervisord`` function in the form that supervisorctl reads: ``group:`` in
    place of ``group:*``, for all programs of the group.
    """
    return str(name).removesuffix("*") if str(name).endswith(":*") else str(name)


def _group(name: str) -> str:
    return _members(name).removesuffix(":")


def _config(ctx: Context, conf_file: str | None) -> configparser.ConfigParser:
    names = [conf_file] if conf_file is not None else list(_FILES)
    real_path = next((ctx.host.path(name) for name in names if ctx.host.path(name).is_file()), None)
    if real_path is None:
        raise CommandError(f"No suitable config file found: there is no {' and no '.join(names)}")
    config = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        config.read_string(real_path.read_text("utf-8", "replace"), source=conf_file or names[0])
    except configparser.Error as error:
        raise CommandError(f"Unable to read from {conf_file or real_path}: {error}") from error
    return config


def _value(text: str) -> object:
    if text.lower() in _TRUTHS:
        return _TRUTHS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
