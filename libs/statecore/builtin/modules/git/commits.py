"""Functions of ``git`` that change the index and make commits."""

from __future__ import annotations

import shlex

from statecore.model.context import Context
from statecore.model.errors import InvocationError
from statecore.system.git_commands import Words, operand, options, place, run


def add(
    ctx: Context,
    cwd: str,
    filename: str,
    opts: Words = "",
    git_opts: Words = "",
    user: str | None = None,
    password: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
) -> str:
    """Add a file or directory to the index. Return git's list of added files as text.

    CLI Example:

        salt '*' git.add /srv/app conf/site.conf
    """
    words = ["add", "--verbose", *(each for each in options(opts) if each not in ("-v", "--verbose"))]
    return run(ctx, place(ctx, cwd, user), [*words, "--", str(filename)], git_opts=git_opts, user=user)


def rm_(
    ctx: Context,
    cwd: str,
    filename: str,
    opts: Words = "",
    git_opts: Words = "",
    user: str | None = None,
    password: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
) -> str:
    """Remove a file from the index and from the working tree. Return git's output as text.

    opts
        such as ``-r`` for a directory

    CLI Example:

        salt '*' git.rm /srv/app old.conf
    """
    words = ["rm", *options(opts), "--", str(filename)]
    return run(ctx, place(ctx, cwd, user), words, git_opts=git_opts, user=user)


def commit(
    ctx: Context,
    cwd: str,
    message: str,
    opts: Words = "",
    git_opts: Words = "",
    user: str | None = None,
    password: str | None = None,
    filename: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
) -> str:
    """Commit what is in the index, or only the file ``filename``. Return git's output as text.

    CLI Example:

        salt '*' git.commit /srv/app 'Open port 8080'
    """
    words = ["commit", "-m", str(message), *options(opts), *(["--", str(filename)] if filename else [])]
    return run(ctx, place(ctx, cwd, user), words, git_opts=git_opts, user=user)


def stash(
    ctx: Context,
    cwd: str,
    action: str = "save",
    opts: Words = "",
    git_opts: Words = "",
    user: str | None = None,
    password: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
) -> str:
    """Run ``git stash`` with an action such as ``save``, ``pop`` or ``list``. Return git's output as text.

    CLI Example:

        salt '*' git.stash /srv/app list
    """
    words = ["stash", *operand("action", action), *options(opts)]
    return run(ctx, place(ctx, cwd, user), words, git_opts=git_opts, user=user)


def merge(
    ctx: Context,
    cwd: str,
    rev: str | None = None,
    opts: Words = "",
    git_opts: Words = "",
    user: str | None = None,
    password: str | None = None,
    identity: object = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
) -> str:
    """Merge a revision into the current branch of a git repository. Return git's output as text.

    CLI Example:

        salt '*' git.merge /srv/app origin/main opts='--ff-only'
    """
    words = ["merge", *options(opts), *operand("rev", rev)]
    return run(ctx, place(ctx, cwd, user), words, git_opts=git_opts, user=user, identity=identity)


def rebase(
    ctx: Context,
    cwd: str,
    rev: str = "master",
    opts: Words = "",
    git_opts: Words = "",
    user: str | None = None,
    password: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
) -> str:
    """Rebase the current branch onto a revision. Return git's output as text.

    rev
        a revision, or two: the new base, and the branch to rebase

    CLI Example:

        salt '*' git.rebase /srv/app origin/main
    """
    words = options(opts)
    if {"-i", "--interactive"}.intersection(words):
        raise InvocationError("Interactive rebases are not supported")
    words = ["rebase", *words, *(name for each in shlex.split(str(rev)) for name in operand("rev", each))]
    return run(ctx, place(ctx, cwd, user), words, git_opts=git_opts, user=user)
