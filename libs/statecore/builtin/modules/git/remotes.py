"""Functions of ``git`` for remotes: their URLs and refs, fetch, pull and push."""

from __future__ import annotations

import re

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of
from statecore.system.git_commands import Words, absolute, address, operand, options, parts_of, place, redacted, run

#: A line of ``git fetch`` about an updated ref: old and new commit, or the kind of a new ref; the ref.
_UPDATED = re.compile(r"[\s*]*(?:([0-9a-f]+)\.\.([0-9a-f]+)|\[(?:new (tag|branch)|tag update)\])\s+(.+)->")


def remotes(
    ctx: Context,
    cwd: str,
    user: str | None = None,
    password: str | None = None,
    redact_auth: bool = True,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
) -> dict[str, dict[str, str]]:
    """Return the remotes of a git repository: a map of remote name to its ``fetch`` and ``push`` URLs. Logins are replaced
    unless ``redact_auth`` is False.

    CLI Example:

        salt '*' git.remotes /srv/app
    """
    found: dict[str, dict[str, str]] = {}
    for line in lines_of(run(ctx, place(ctx, cwd, user), ["remote", "--verbose"], user=user)):
        name, _, rest = line.partition("\t")
        url, _, kind = rest.rpartition(" ")
        # A partial clone's filter stands behind the kind.
        if kind in ("(fetch)", "(push)"):
            found.setdefault(name, {})[kind.strip("()")] = redacted(url) if redact_auth else url
    return found


def remote_get(
    ctx: Context,
    cwd: str,
    remote: str = "origin",
    user: str | None = None,
    password: str | None = None,
    redact_auth: bool = True,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
) -> dict[str, str]:
    """Return the ``fetch`` and ``push`` URLs of one remote. Raise CommandError for an unknown remote.

    CLI Example:

        salt '*' git.remote_get /srv/app origin
    """
    found = remotes(ctx, cwd, user, redact_auth=redact_auth)
    if remote not in found:
        raise CommandError(f"Remote '{remote}' not present in git checkout located at {place(ctx, cwd, user)}")
    return found[remote]


def remote_set(
    ctx: Context,
    cwd: str,
    url: str,
    remote: str = "origin",
    user: str | None = None,
    password: str | None = None,
    https_user: str | None = None,
    https_pass: str | None = None,
    push_url: str | None = None,
    push_https_user: str | None = None,
    push_https_pass: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
) -> dict[str, str]:
    """Set the URL of a remote of a git repository. Return a map with its ``fetch`` and ``push`` URLs.

    push_url
        another URL for pushes

    CLI Example:

        salt '*' git.remote_set /srv/app https://git.example/app.git
    """
    name, fetch_from = operand("remote", remote), address(url, https_user, https_pass)
    known = remotes(ctx, cwd, user)
    directory = absolute(cwd)
    if remote in known:
        run(ctx, directory, ["remote", "rm", *name], user=user)
    run(ctx, directory, ["remote", "add", *name, *operand("url", fetch_from)], user=user)
    if push_url:
        to = operand("push_url", address(push_url, push_https_user, push_https_pass))
        run(ctx, directory, ["remote", "set-url", "--push", *name, *to], user=user)
    return remote_get(ctx, cwd, remote, user)


def remote_refs(
    ctx: Context,
    url: str,
    heads: bool = False,
    tags: bool = False,
    user: str | None = None,
    password: str | None = None,
    identity: object = None,
    https_user: str | None = None,
    https_pass: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
    saltenv: str = "base",
    filter: str | None = None,
) -> dict[str, str]:
    """Return the refs of a remote git repository: a map of ref to SHA1.

    heads, tags
        True: only branches, only tags
    filter
        only refs that match this glob

    CLI Example:

        salt '*' git.remote_refs https://git.example/app.git heads=True
    """
    words = ["ls-remote", *(["--heads"] if heads else []), *(["--tags"] if tags else [])]
    words += [*operand("url", address(url, https_user, https_pass)), *operand("filter", filter)]
    return _refs(run(ctx, None, words, user=user, identity=identity, saltenv=saltenv))


def ls_remote(
    ctx: Context,
    cwd: str | None = None,
    remote: str = "origin",
    ref: str | None = None,
    opts: Words = "",
    git_opts: Words = "",
    user: str | None = None,
    password: str | None = None,
    identity: object = None,
    https_user: str | None = None,
    https_pass: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
    saltenv: str = "base",
) -> dict[str, str]:
    """Return the refs of a remote of a repository, or of the repository at a URL: a map of ref to SHA1.

    remote
        name of a remote of the repository at ``cwd``, or a URL
    ref
        only refs that match this name or glob

    CLI Example:

        salt '*' git.ls_remote /srv/app origin main
    """
    words = ["ls-remote", *options(opts), *operand("remote", address(remote, https_user, https_pass))]
    directory = None if cwd is None else place(ctx, cwd, user)
    words += operand("ref", ref)
    return _refs(run(ctx, directory, words, git_opts=git_opts, user=user, identity=identity, saltenv=saltenv))


def fetch(
    ctx: Context,
    cwd: str,
    remote: str | None = None,
    force: bool = False,
    refspecs: object = None,
    opts: Words = "",
    git_opts: Words = "",
    user: str | None = None,
    password: str | None = None,
    identity: object = None,
    ignore_retcode: bool = False,
    saltenv: str = "base",
    output_encoding: str | None = None,
) -> dict[str, object]:
    """Fetch from a remote of a git repository. Return a map of the updated refs: ``new branches``, ``new tags`` and
    ``updated tags`` (lists) and ``updated branches`` (a map of branch to ``old`` and ``new`` commit).

    refspecs
        list of refspecs, or text with commas

    CLI Example:

        salt '*' git.fetch /srv/app origin
    """
    words = ["fetch", *(["--force"] if force else [])]
    words += [each for each in options(opts) if each not in ("-f", "--force")]
    words += operand("remote", remote)
    words += (
        [name for each in parts_of(refspecs or []) for name in operand("refspec", each)] if refspecs is not None else []
    )
    output = run(
        ctx,
        place(ctx, cwd, user),
        words,
        git_opts=git_opts,
        user=user,
        identity=identity,
        saltenv=saltenv,
        merged=True,
    )
    return _updates(output)


def pull(
    ctx: Context,
    cwd: str,
    opts: Words = "",
    git_opts: Words = "",
    user: str | None = None,
    password: str | None = None,
    identity: object = None,
    ignore_retcode: bool = False,
    saltenv: str = "base",
    output_encoding: str | None = None,
) -> str:
    """Run ``git pull`` with the options ``opts``. Return git's output as text.

    CLI Example:

        salt '*' git.pull /srv/app opts='--rebase origin main'
    """
    return run(
        ctx,
        place(ctx, cwd, user),
        ["pull", *options(opts)],
        git_opts=git_opts,
        user=user,
        identity=identity,
        saltenv=saltenv,
    )


def push(
    ctx: Context,
    cwd: str,
    remote: str | None = None,
    ref: str | None = None,
    opts: Words = "",
    git_opts: Words = "",
    user: str | None = None,
    password: str | None = None,
    identity: object = None,
    ignore_retcode: bool = False,
    saltenv: str = "base",
    output_encoding: str | None = None,
) -> str:
    """Push to a remote of a git repository. Return git's standard output as text. Raise CommandError if git fails.

    remote, ref
        name or URL of the remote, and the branch, tag or refspec

    CLI Example:

        salt '*' git.push /srv/app origin main
    """
    words = ["push", *options(opts), *operand("remote", remote), *operand("ref", ref)]
    return run(ctx, place(ctx, cwd, user), words, git_opts=git_opts, user=user, identity=identity, saltenv=saltenv)


def _refs(output: str) -> dict[str, str]:
    pairs = (line.split(None, 1) for line in lines_of(output))
    return {pair[1]: pair[0] for pair in pairs if len(pair) == 2}


def _updates(output: str) -> dict[str, object]:
    """Return the updated refs that the output of ``git fetch`` lists, as the map that ``git.fetch`` returns. Forced
    updates are left out, as in Salt.
    """
    found: dict[str, object] = {}
    updated: dict[str, object] = {}
    rows: dict[str, list[str]] = {"new tags": [], "new branches": [], "updated tags": []}
    for match in filter(None, map(_UPDATED.match, lines_of(output))):
        old, new, kind, ref = match.groups()
        if kind is not None:
            rows["new tags" if kind == "tag" else "new branches"].append(ref.rstrip())
        elif old is not None:
            updated[ref.rstrip()] = {"old": old, "new": new}
        else:
            rows["updated tags"].append(ref.rstrip())
    found |= {key: refs for key, refs in rows.items() if refs}
    return found | ({"updated branches": updated} if updated else {})
