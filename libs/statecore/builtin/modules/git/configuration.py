"""Functions of ``git`` for its configuration: of a repository, or with ``global=True`` of the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.ports import CommandResult
from statecore.model.text_lines import lines_of
from statecore.system.git_commands import ended, operand, parts_of, place, refuse_unknown, run


def config_get(
    ctx: Context,
    key: str,
    cwd: str | None = None,
    user: str | None = None,
    password: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
    **kwargs: object,
) -> str | list[str] | None:
    """Return the value of a key of git's configuration, None if it is not set. Of several values, the last one is returned.

    ``global=True`` reads the user's configuration. ``all=True`` returns a list of all values.

    CLI Example:

        salt '*' git.config_get user.name cwd=/srv/app
    """
    refuse_unknown(kwargs, "all", "global")
    values = _values(ctx, key, cwd, user, kwargs)
    return values if kwargs.get("all") or values is None else values[-1] if values else ""


def config_get_regexp(
    ctx: Context,
    key: str,
    value_regex: str | None = None,
    cwd: str | None = None,
    user: str | None = None,
    password: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
    **kwargs: object,
) -> dict[str, list[str]]:
    """Return a map of key to list of values for all keys of git's configuration that match a regular expression.

    value_regex
        only values that match this regular expression
    global
        True: of the user's configuration

    CLI Example:

        salt '*' git.config_get_regexp '^user' cwd=/srv/app
    """
    refuse_unknown(kwargs, "global")
    words = ["--get-regexp", *operand("key", key), *([str(value_regex)] if value_regex is not None else [])]
    result = _asked(ctx, words, cwd, user, kwargs)
    found: dict[str, list[str]] = {}
    for line in lines_of(result.stdout.rstrip()) if result.retcode != 1 else ():
        name, _, value = line.partition(" ")
        if value:
            found.setdefault(name, []).append(value)
    return found


def config_set(
    ctx: Context,
    key: str,
    value: object = None,
    multivar: object = None,
    cwd: str | None = None,
    user: str | None = None,
    password: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
    **kwargs: object,
) -> list[str] | None:
    """Set a key of git's configuration to ``value``, or to several values, ``multivar`` (a list, or text with commas).
    Return the list of its values.

    ``global=True`` changes the user's configuration. ``add=True`` adds the value to those that the key has.

    CLI Example:

        salt '*' git.config_set user.name 'Ann Lee' cwd=/srv/app
    """
    refuse_unknown(kwargs, "add", "global")
    directory = _directory(ctx, cwd, user, kwargs)
    if value is not None and multivar is not None:
        raise InvocationError("Only one of 'value' and 'multivar' is permitted")
    if value is None and multivar is None:
        raise InvocationError("One of 'value' and 'multivar' is required")
    wanted: Sequence[str] = [str(value)] if value is not None else parts_of(multivar)
    first = "--add" if kwargs.get("add") and value is not None else "--replace-all"
    for number, each in enumerate(wanted):
        scope = ["--global"] if kwargs.get("global") else []
        words = ["config", *scope, "--add" if number else first, *operand("key", key), each]
        run(ctx, directory, words, user=user)
    return _values(ctx, key, cwd, user, kwargs)


def config_unset(
    ctx: Context,
    key: str,
    value_regex: str | None = None,
    cwd: str | None = None,
    user: str | None = None,
    password: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
    **kwargs: object,
) -> bool:
    """Remove a key of git's configuration; with ``all=True`` even if it has several values. Return True. Raise
    CommandError if the key is not set.

    value_regex
        only values that match this regular expression
    global
        True: from the user's configuration

    CLI Example:

        salt '*' git.config_unset http.proxy cwd=/srv/app
    """
    refuse_unknown(kwargs, "all", "global")
    directory = _directory(ctx, cwd, user, kwargs)
    words = ["config", "--unset-all" if kwargs.get("all") else "--unset", *_scope(kwargs), *operand("key", key)]
    words += [str(value_regex)] if value_regex is not None else []
    result = ended(ctx, directory, words, user=user)
    if result.retcode == 0:
        return True
    if result.retcode == 1:
        raise CommandError("Section or key is invalid")
    if result.retcode == 5:
        if _values(ctx, key, cwd, user, kwargs) is None:
            raise CommandError(f"Key '{key}' does not exist")
        also = " and value_regex matches multiple values" if value_regex is not None else ""
        raise CommandError(f"Multiple values exist for key '{key}'{also}")
    if result.retcode == 6:
        raise CommandError("The value_regex is invalid")
    reason = f"; {result.stderr.rstrip()}" if result.stderr.strip() else ""
    raise CommandError(f"Failed to unset key '{key}', git config returned exit code {result.retcode}{reason}")


def _values(
    ctx: Context, key: str, cwd: str | None, user: str | None, kwargs: Mapping[str, object]
) -> list[str] | None:
    result = _asked(ctx, ["--get-all", *operand("key", key)], cwd, user, kwargs)
    return None if result.retcode == 1 else lines_of(result.stdout.rstrip())


def _asked(
    ctx: Context, words: Sequence[str], cwd: str | None, user: str | None, kwargs: Mapping[str, object]
) -> CommandResult:
    directory = _directory(ctx, cwd, user, kwargs)
    return ended(ctx, directory, ["config", *_scope(kwargs), *words], user=user)


def _directory(ctx: Context, cwd: str | None, user: str | None, kwargs: Mapping[str, object]) -> str | None:
    if cwd is None and not kwargs.get("global"):
        raise InvocationError("'cwd' argument required unless global=True")
    return None if cwd is None else place(ctx, cwd, user)


def _scope(kwargs: Mapping[str, object]) -> list[str]:
    return ["--global" if kwargs.get("global") else "--local"]
