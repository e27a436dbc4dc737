"""Git repositories on the managed host, through its ``git`` program: Salt's ``git`` execution module.

Arguments of many functions: ``cwd`` is the directory of the repository. ``user`` is the user that git runs as.
``identity`` is the path of an SSH key without a passphrase, or a list of such paths. All functions raise CommandError
with git's error output.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlsplit, urlunsplit

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.ports import CommandResult

#: The ssh command for an identity. No terminal can answer questions, so ssh must not ask any.
_SSH = ("ssh", "-o", "StrictHostKeyChecking=no", "-o", "PasswordAuthentication=no", "-o", "BatchMode=yes")


def available(ctx: Context) -> str | None:
    """Return None if the host has the program ``git``; else return the reason as text."""
    return None if ctx.host.which("git") else "the host has no program git"


def version(ctx: Context, versioninfo: bool = False) -> object:
    """Return the version of the host's git as text, or with ``versioninfo`` as a list of numbers."""
    text = _do(ctx, None, ["--version"]).split()[2]
    return [int(part) if part.isdecimal() else part for part in text.split(".")] if versioninfo else text


def clone(
    ctx: Context,
    cwd: str,
    url: str | None = None,
    name: str | None = None,
    opts: str | Sequence[object] | None = "",
    user: str | None = None,
    identity: str | Sequence[str] | None = None,
    https_user: str | None = None,
    https_pass: str | None = None,
    **kwargs: object,
) -> bool:
    """Clone a git repository into ``cwd``, or into the directory ``name`` in it. Return True. Raise CommandError with
    git's error.

    https_user, https_pass
        login for an https URL

    CLI Example:

        salt '*' git.clone /srv/app https://git.example/app.git
    """
    target = f"{cwd.rstrip('/')}/{name}" if name else cwd
    words = ["clone", *_words(opts), "--", _address(url or "", https_user, https_pass), target]
    _do(ctx, None, words, user=user, identity=identity)
    return True


def is_worktree(ctx: Context, cwd: str, user: str | None = None, **kwargs: object) -> bool:
    """Return whether a directory is a linked worktree of a git repository."""
    return ctx.host.path(f"{cwd}/.git").is_file()


def revision(
    ctx: Context, cwd: str, rev: str = "HEAD", short: bool = False, user: str | None = None, **kwargs: object
) -> str:
    """Return the SHA1 of a revision of a git repository; with ``short`` its abbreviated form. Raise CommandError for an
    unknown revision.
    """
    return rev_parse(ctx, cwd, rev, opts="--short" if short else "", user=user)


def rev_parse(
    ctx: Context,
    cwd: str,
    rev: str | None = None,
    opts: str | Sequence[object] | None = "",
    user: str | None = None,
    **kwargs: object,
) -> str:
    """Return the output of ``git rev-parse --verify`` with the options ``opts``, such as a SHA1. Raise CommandError
    with git's error.
    """
    return _do(ctx, cwd, ["rev-parse", "--verify", "-q", *_words(opts), *_operand("rev", rev)], user=user)


def current_branch(ctx: Context, cwd: str, user: str | None = None, **kwargs: object) -> str:
    """Return the name of the branch that is checked out in a git repository, "" if HEAD is detached."""
    return _try(ctx, cwd, ["symbolic-ref", "-q", "--short", "HEAD"], user=user).stdout.strip()


def list_branches(ctx: Context, cwd: str, remote: bool = False, user: str | None = None, **kwargs: object) -> list[str]:
    """Return the names of the local branches of a git repository, or with ``remote`` of the remote-tracking
    branches.
    """
    return _do(
        ctx, cwd, ["for-each-ref", "--format=%(refname:short)", f"refs/{'remotes' if remote else 'heads'}/"], user=user
    ).split()


def list_tags(ctx: Context, cwd: str, user: str | None = None, **kwargs: object) -> list[str]:
    """Return the names of the tags of a git repository."""
    return _do(ctx, cwd, ["for-each-ref", "--format=%(refname:strip=2)", "refs/tags/"], user=user).split()


def remotes(
    ctx: Context, cwd: str, user: str | None = None, redact_auth: bool = True, **kwargs: object
) -> dict[str, dict[str, str]]:
    """Return the remotes of a git repository: a map of remote name to its ``fetch`` and ``push`` URLs. Passwords are
    replaced unless ``redact_auth`` is False.
    """
    found: dict[str, dict[str, str]] = {}
    for line in _do(ctx, cwd, ["remote", "-v"], user=user).splitlines():
        name, _, rest = line.partition("\t")
        url, _, kind = rest.rpartition(" ")
        found.setdefault(name, {})[kind.strip("()")] = _redacted(url) if redact_auth else url
    return found


def remote_set(
    ctx: Context,
    cwd: str,
    url: str,
    remote: str = "origin",
    user: str | None = None,
    https_user: str | None = None,
    https_pass: str | None = None,
    **kwargs: object,
) -> dict[str, str]:
    """Set the URL of a remote of a git repository. Return a map with its ``fetch`` and ``push`` URLs."""
    _operand("remote", remote)
    if remote in remotes(ctx, cwd, user):
        _do(ctx, cwd, ["remote", "rm", "--", remote], user=user)
    _do(ctx, cwd, ["remote", "add", "--", remote, _address(url, https_user, https_pass)], user=user)
    return remotes(ctx, cwd, user)[remote]


def remote_refs(
    ctx: Context,
    url: str,
    heads: bool = False,
    tags: bool = False,
    user: str | None = None,
    identity: str | Sequence[str] | None = None,
    https_user: str | None = None,
    https_pass: str | None = None,
    **kwargs: object,
) -> dict[str, str]:
    """Return the refs of a remote git repository: a map of ref to SHA1.

    heads, tags
        True: only branches, only tags
    """
    words = ["ls-remote", *(["--heads"] if heads else []), *(["--tags"] if tags else [])]
    output = _do(ctx, None, [*words, "--", _address(url, https_user, https_pass)], user=user, identity=identity)
    pairs = (line.split(None, 1) for line in output.splitlines())
    return {ref: sha for sha, ref in pairs}


def fetch(
    ctx: Context,
    cwd: str,
    remote: str | None = None,
    force: bool = False,
    refspecs: str | Sequence[object] | None = None,
    opts: str | Sequence[object] | None = "",
    user: str | None = None,
    identity: str | Sequence[str] | None = None,
    **kwargs: object,
) -> str:
    """Fetch from a remote of a git repository. Return git's list of updated refs as text, "" if nothing was updated.
    Raise CommandError with git's error.
    """
    names = [*_operand("remote", remote), *(name for each in _words(refspecs) for name in _operand("refspec", each))]
    words = ["fetch", *(["--force"] if force else []), *_words(opts), *names]
    result = _try(ctx, cwd, words, user=user, identity=identity)
    _check(result, words)
    return result.stderr.strip() if "->" in result.stderr else ""


def checkout(
    ctx: Context,
    cwd: str,
    rev: str | None = None,
    force: bool = False,
    opts: str | Sequence[object] | None = "",
    user: str | None = None,
    **kwargs: object,
) -> str:
    """Check out a revision of a git repository. Return git's output as text. Raise CommandError with git's error."""
    words = ["checkout", *(["--force"] if force else []), *_words(opts), *_operand("rev", rev)]
    return _do(ctx, cwd, words, user=user)


def reset(
    ctx: Context, cwd: str, opts: str | Sequence[object] | None = "", user: str | None = None, **kwargs: object
) -> str:
    """Run ``git reset`` with the options ``opts``. Return git's output as text. Raise CommandError with git's error."""
    return _do(ctx, cwd, ["reset", *_words(opts)], user=user)


def merge(
    ctx: Context,
    cwd: str,
    rev: str | None = None,
    opts: str | Sequence[object] | None = "",
    user: str | None = None,
    **kwargs: object,
) -> str:
    """Merge a revision into the current branch of a git repository. Return git's output as text. Raise CommandError
    with git's error.
    """
    return _do(ctx, cwd, ["merge", *_words(opts), *_operand("rev", rev)], user=user)


def branch(
    ctx: Context,
    cwd: str,
    name: str | None = None,
    opts: str | Sequence[object] | None = "",
    user: str | None = None,
    **kwargs: object,
) -> bool:
    """Run ``git branch`` with the options ``opts``, such as ``-d`` to delete the branch ``name``. Return True. Raise
    CommandError with git's error.
    """
    _do(ctx, cwd, ["branch", *_words(opts), *_operand("name", name)], user=user)
    return True


def tag_delete(ctx: Context, cwd: str, names: Sequence[str], user: str | None = None) -> bool:
    """Delete tags of a git repository. Return True. Raise CommandError with git's error."""
    _do(ctx, cwd, ["tag", "-d", "--", *names], user=user)
    return True


def is_ancestor(ctx: Context, cwd: str, old: str, new: str, user: str | None = None) -> bool:
    """Return whether the revision ``old`` is an ancestor of the revision ``new`` in a git repository; False also for an
    unknown revision.
    """
    revisions = [*_operand("rev", old), *_operand("rev", new)]
    return _try(ctx, cwd, ["merge-base", "--is-ancestor", *revisions], user=user).retcode == 0


def has_changes(ctx: Context, cwd: str, user: str | None = None) -> bool:
    """Return whether tracked files of a git worktree differ from HEAD."""
    return bool(_try(ctx, cwd, ["diff", "HEAD"], user=user).stdout)


def submodule(
    ctx: Context,
    cwd: str,
    command: str,
    opts: str | Sequence[object] | None = "",
    user: str | None = None,
    identity: str | Sequence[str] | None = None,
    **kwargs: object,
) -> str:
    """Run ``git submodule`` with a command such as ``update`` and options. Return git's output as text. Raise
    CommandError with git's error.
    """
    return _do(ctx, cwd, ["submodule", *_operand("command", command), *_words(opts)], user=user, identity=identity)


def status(ctx: Context, cwd: str, user: str | None = None, **kwargs: object) -> dict[str, list[str]]:
    """Return the changed files of a git worktree: a map with lists of modified, new, deleted and untracked files."""
    names = {"M": "modified", "A": "new", "D": "deleted", "??": "untracked"}
    found: dict[str, list[str]] = {}
    for entry in _do(ctx, cwd, ["status", "-z", "--porcelain"], user=user).split("\0"):
        if entry.strip():
            sign, _, name = entry.strip().partition(" ")
            found.setdefault(names.get(sign, names.get(sign[:1], sign)), []).append(name.strip())
    return found


def config_get(ctx: Context, key: str, cwd: str | None = None, user: str | None = None, **kwargs: object) -> object:
    """Return the value of a key of git's configuration, None if it is not set.

    ``global=True`` reads the user's configuration. ``all=True`` returns a list of all values.
    """
    words = ["config", *_scope(kwargs), "--get-all" if kwargs.get("all") else "--get", *_operand("key", key)]
    result = _try(ctx, cwd, words, user=user)
    values = result.stdout.splitlines()
    if result.retcode or not values:
        return None
    return values if kwargs.get("all") else values[-1]


def config_get_regexp(
    ctx: Context,
    key: str,
    value_regex: str | None = None,
    cwd: str | None = None,
    user: str | None = None,
    **kwargs: object,
) -> dict[str, list[str]]:
    """Return a map of key to list of values for all keys of git's configuration that match a regular expression."""
    words = ["config", *_scope(kwargs), "--get-regexp", *_operand("key", key), *([value_regex] if value_regex else [])]
    found: dict[str, list[str]] = {}
    for line in _try(ctx, cwd, words, user=user).stdout.splitlines():
        name, _, value = line.partition(" ")
        found.setdefault(name, []).append(value)
    return found


def config_set(
    ctx: Context,
    key: str,
    value: object = None,
    multivar: Sequence[object] | None = None,
    cwd: str | None = None,
    user: str | None = None,
    **kwargs: object,
) -> object:
    """Set a key of git's configuration to ``value``, or to the list ``multivar``. Return the list of its values."""
    wanted = [str(each) for each in multivar] if multivar is not None else [str(value)]
    _operand("key", key)
    scope = _scope(kwargs)
    _do(ctx, cwd, ["config", *scope, "--replace-all", key, wanted[0]], user=user)
    for each in wanted[1:]:
        _do(ctx, cwd, ["config", *scope, "--add", key, each], user=user)
    return config_get(ctx, key, cwd, user, **{**kwargs, "all": True})


def config_unset(
    ctx: Context,
    key: str,
    value_regex: str | None = None,
    cwd: str | None = None,
    user: str | None = None,
    **kwargs: object,
) -> bool:
    """Remove a key of git's configuration; with ``all=True`` even if it has several values. Return True. Raise
    CommandError if the key is not set.
    """
    words = ["config", *_scope(kwargs), "--unset-all" if kwargs.get("all") else "--unset", *_operand("key", key)]
    _do(ctx, cwd, [*words, *([value_regex] if value_regex else [])], user=user)
    return True


def address(ctx: Context, url: str, https_user: str | None = None, https_pass: str | None = None) -> str:
    """Return the URL of a git repository with the login ``https_user`` and ``https_pass`` added. Raise CommandError if
    a login is given for a scheme other than https.
    """
    return _address(url, https_user, https_pass)


def _address(url: str, user: str | None, password: str | None) -> str:

    if not user:
        return url
    parts = urlsplit(url)
    if parts.scheme != "https":
        raise CommandError("Basic Auth only supported for HTTPS")
    login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    return urlunsplit(parts._replace(netloc=f"{login}@{parts.netloc.rpartition('@')[2]}"))


def _redacted(url: str) -> str:
    """Return the URL of a git repository with its login replaced by ``<redacted>``."""
    parts = urlsplit(url) if "://" in url else None
    if parts is None or "@" not in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc=f"<redacted>@{parts.netloc.rpartition('@')[2]}"))


def _operand(kind: str, value: str | None) -> list[str]:
    """Return ``[value]``, [] without a value. Raise CommandError for a value that git would read as an option."""
    if not value:
        return []
    # A single hyphen is the previous branch.
    if str(value).startswith("-") and value != "-":
        raise CommandError(
            f"{kind} {value!r} begins with a hyphen: git would read it as an option; options belong into opts"
        )
    return [str(value)]


def _scope(kwargs: Mapping[str, object]) -> list[str]:
    return ["--global"] if kwargs.get("global") else []


def _words(opts: str | Sequence[object] | None) -> list[str]:
    return shlex.split(opts) if isinstance(opts, str) else [str(each) for each in opts or ()]


def _do(
    ctx: Context,
    cwd: str | None,
    words: Sequence[str],
    *,
    user: str | None = None,
    identity: str | Sequence[str] | None = None,
) -> str:
    result = _try(ctx, cwd, words, user=user, identity=identity)
    _check(result, words)
    return result.stdout.strip()


def _check(result: CommandResult, words: Sequence[str]) -> None:
    if result.retcode:
        reason = (result.stderr or result.stdout).strip()
        raise CommandError(reason or f"git {words[0]} failed with {result.retcode}")


def _try(
    ctx: Context,
    cwd: str | None,
    words: Sequence[str],
    *,
    user: str | None = None,
    identity: str | Sequence[str] | None = None,
) -> CommandResult:
    env = {"GIT_TERMINAL_PROMPT": "0"}
    keys = [identity] if isinstance(identity, str) else list(identity or ())
    if keys:
        env["GIT_SSH_COMMAND"] = shlex.join([*_SSH, *(word for key in keys for word in ("-i", str(key)))])
    return ctx.host.run(["git", *words], cwd=cwd, runas=user, env=env)
