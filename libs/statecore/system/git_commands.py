"""Runs the managed host's ``git`` for the execution module and the states ``git``: options, operands, logins, errors."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias
from urllib.parse import quote, urlsplit, urlunsplit

from statecore.host.content import private_files
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.ports import CommandResult

#: Options of git as text, which is split as a shell does, or as a list.
Words: TypeAlias = "str | Sequence[object] | None"

#: The ssh command for an identity. No terminal can answer questions, so ssh must not ask any.
_SSH = ("ssh", "-o", "StrictHostKeyChecking=no", "-o", "PasswordAuthentication=no", "-o", "BatchMode=yes")

_LOGIN = re.compile(r"(https?://).*@")


def run(
    ctx: Context,
    cwd: str | None,
    words: Sequence[str],
    *,
    git_opts: Words = "",
    user: str | None = None,
    identity: object = None,
    saltenv: str = "base",
    merged: bool = False,
) -> str:
    """Run ``git`` on the host with the arguments ``words`` and return its output without white space at its end. Raise
    CommandError with Salt's message if git fails.

    ``identity``: paths or ``salt://`` URLs of SSH keys. ``merged``: the output includes standard error.
    """
    command = ["git", *options(git_opts), *words]
    result = ended(ctx, cwd, command[1:], user=user, identity=identity, saltenv=saltenv, merged=merged)
    if result.retcode:
        reason = redacted((result.stdout if merged else result.stderr).rstrip())
        if identity:
            raise CommandError(f"Unable to authenticate using identity file:\n\n{reason}")
        raise CommandError(f"Command '{redacted(' '.join(command))}' failed" + (f": {reason}" if reason else ""))
    return result.stdout.rstrip()


def ended(
    ctx: Context,
    cwd: str | None,
    words: Sequence[str],
    *,
    user: str | None = None,
    identity: object = None,
    saltenv: str = "base",
    merged: bool = False,
) -> CommandResult:
    """Run ``git`` on the host with the arguments ``words`` and return its exit code and output (CommandResult). A
    failure of git is not raised.
    """
    env = {"GIT_TERMINAL_PROMPT": "0"}
    with _keys(ctx, identity, user, saltenv) as keys:
        if keys:
            env["GIT_SSH_COMMAND"] = shlex.join([*_SSH, *(word for key in keys for word in ("-i", key))])
        return ctx.host.run(["git", *words], cwd=cwd, runas=user, env=env, merge_stderr=merged)


def options(opts: Words) -> list[str]:
    """Return options of git, given as text or a list, as a list of words. A ``--`` at the end is left out, as in
    Salt.
    """
    words = shlex.split(opts) if isinstance(opts, str) else [str(each) for each in _as_list(opts)]
    return words[:-1] if words[-1:] == ["--"] else words


def operand(kind: str, value: object) -> list[str]:
    """Return ``[value]`` for git's command line; [] for None and "". Raise CommandError for a value that git would read
    as an option.

    ``kind`` names the value in the message ("branch").
    """
    if value is None or value == "":
        return []
    # A single hyphen is the previous branch.
    if str(value).startswith("-") and value != "-":
        raise CommandError(
            f"{kind} {value!r} begins with a hyphen: git would read it as an option; options belong into opts"
        )
    return [str(value)]


def parts_of(value: object) -> list[str]:
    """Return a list of texts from a list, or from a text with commas."""
    return [str(each) for each in value] if isinstance(value, list | tuple) else str(value).split(",")


def absolute(cwd: object) -> str:
    """Return the directory of a repository for the few functions that take no path relative to the user's home, as in Salt.
    Raise CommandError for a relative path.
    """
    if not str(cwd).startswith("/"):
        raise CommandError(f"Specified cwd '{cwd}' either not absolute or does not exist")
    return str(cwd)


def place(ctx: Context, cwd: object, user: str | None) -> str:
    """Return a path as an absolute path of the host. A relative path begins in the home directory of the user who runs
    git.

    Raise CommandError for an unknown user.
    """
    path = str(cwd)
    if path.startswith("/"):
        return path
    home = (
        (ctx.call("user.info", user) or {}).get("home")
        if user
        else "/root"
        if os.geteuid() == 0
        else os.environ["HOME"]
    )
    if not home:
        raise CommandError(f"User '{user}' is not available")
    return f"{home}/{path}"


def address(url: object, user: str | None, password: str | None) -> str:
    """Return the URL of a repository with a user and password in it; without a user the URL unchanged. Raise
    InvocationError if there is a user and the scheme is not https.
    """
    text = str(url)
    if not user:
        return text
    parts = urlsplit(text)
    if parts.scheme != "https":
        raise InvocationError("Basic Auth only supported for HTTPS")
    login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    return urlunsplit(parts._replace(netloc=f"{login}@{parts.netloc.rpartition('@')[2]}"))


def redacted(text: str) -> str:
    """Return a text in which the user and password of an http or https URL are replaced by ``<redacted>``."""
    return _LOGIN.sub(r"\1<redacted>@", text)


def refuse_unknown(kwargs: Mapping[str, object], *known: str) -> None:
    """Raise InvocationError, with Salt's message, for keyword arguments that are not ``known``.

    Names with two leading underscores are accepted, because the job adds them.
    """
    wrong = [f"{name}={value}" for name, value in kwargs.items() if name not in known and not name.startswith("__")]
    if wrong:
        raise InvocationError(f"The following keyword arguments are not valid: {', '.join(wrong)}")


def _as_list(value: object) -> Sequence[object]:
    if value is None:
        return []
    return value if isinstance(value, list | tuple) else [value]


@contextlib.contextmanager
def _keys(ctx: Context, identity: object, user: str | None, saltenv: str) -> Iterator[list[str]]:
    """Yield the paths on the host of the SSH keys that ``identity`` names. Keys from the state tree are copied to the
    host while the block runs.

    Raise CommandError if all of the keys are missing.
    """
    named = [str(each) for each in _as_list(identity)]
    found, missing, made = [], [], []
    try:
        for name in named:
            if name.startswith("salt://"):
                content = ctx.call("cp.get_file_str", name, saltenv)
                if content is not False:
                    made.append(_written(ctx, str(content), user))
                    found.append(made[-1])
                    continue
            elif ctx.host.path(name).is_file():
                found.append(name)
                continue
            missing.append(name)
        if named and not found:
            raise CommandError(
                "Unable to authenticate using identity file:\n\nThe following identity file(s) were not found: "
                + ", ".join(missing)
            )
        yield found
    finally:
        for name in made:
            ctx.host.path(name).unlink(missing_ok=True)


def _written(ctx: Context, content: str, user: str | None) -> str:
    name = f"/tmp/.saltern-git-{os.urandom(8).hex()}"
    real_path = ctx.host.path(name)
    real_path.parent.mkdir(parents=True, exist_ok=True)
    with private_files.new_file(real_path) as file:
        file.write(content.encode())
        if user:
            os.fchown(file.fileno(), ctx.host.uid(user), -1)
    return name
