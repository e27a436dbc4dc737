"""Functions of ``git`` for linked worktrees."""

from __future__ import annotations

from typing import Any

from statecore.host.content.managed_file import remove
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.text_lines import lines_of
from statecore.system.git_commands import Words, operand, options, place, run


def is_worktree(
    ctx: Context,
    cwd: str,
    user: str | None = None,
    password: str | None = None,
    output_encoding: str | None = None,
) -> bool:
    """Return whether a directory is in a linked worktree of a git repository. Return False if it is in no
    repository.

    CLI Example:

        salt '*' git.is_worktree /srv/app-dev
    """
    try:
        top = run(ctx, place(ctx, cwd, user), ["rev-parse", "--show-toplevel"], user=user)
        text = ctx.host.path(f"{top}/.git").read_text("utf-8", "replace")
    except (CommandError, OSError):
        return False
    # The link of a submodule is relative.
    return text.startswith("gitdir: /")


def list_worktrees(
    ctx: Context,
    cwd: str,
    stale: bool = False,
    user: str | None = None,
    password: str | None = None,
    output_encoding: str | None = None,
    all: bool = False,
) -> dict[str, dict[str, Any]]:
    """Return the worktrees of a git repository, its main one included: a map of path to ``branch``, ``HEAD``,
    ``detached``, ``stale`` (its directory is missing) and, if it is detached, ``tags``.

    stale
        True: only worktrees whose directory is missing; False: only those whose directory exists
    all
        True: both

    CLI Example:

        salt '*' git.list_worktrees /srv/app all=True
    """
    if all and stale:
        raise CommandError("'all' and 'stale' cannot both be set to True")
    directory = place(ctx, cwd, user)
    found: dict[str, dict[str, Any]] = {}
    for block in run(ctx, directory, ["worktree", "list", "--porcelain"], user=user).split("\n\n"):
        rows = dict(line.partition(" ")[::2] for line in lines_of(block))
        if "HEAD" not in rows or not ("branch" in rows or "detached" in rows):
            # The entry of a bare repository.
            continue
        gone = not ctx.host.path(rows["worktree"]).is_dir()
        if not all and gone != bool(stale):
            continue
        detached = "detached" in rows
        branch = None if detached else rows["branch"].removeprefix("refs/heads/")
        entry = {"stale": gone, "HEAD": rows["HEAD"], "detached": detached, "branch": branch}
        if detached:
            tags = lines_of(run(ctx, directory, ["tag", "--points-at", rows["HEAD"]], user=user))
            entry |= {"tags": tags} if tags else {}
        found[rows["worktree"]] = entry
    return found


def worktree_add(
    ctx: Context,
    cwd: str,
    worktree_path: str,
    ref: str | None = None,
    reset_branch: bool | None = None,
    force: bool | None = None,
    detach: bool = False,
    opts: Words = "",
    git_opts: Words = "",
    user: str | None = None,
    password: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
    branch: str | None = None,
) -> str:
    """Make a linked worktree of a git repository in the directory ``worktree_path``. Return git's output as text.
    Raise CommandError if git fails.

    ref
        revision to check out; default HEAD
    branch
        name of the new branch; default: the last part of ``worktree_path``
    reset_branch
        True: move the branch if it exists
    detach
        True: no branch
    force
        True: also if the branch is checked out elsewhere

    CLI Example:

        salt '*' git.worktree_add /srv/app /srv/app-dev ref=origin/dev
    """
    if branch and detach:
        raise InvocationError("Only one of 'branch' and 'detach' is allowed")
    words = ["worktree", "add"]
    if detach:
        words.append("--detach")
    else:
        name = operand("branch", branch or worktree_path.rstrip("/").rpartition("/")[2])
        words += ["-B" if reset_branch else "-b", *name, *(["--force"] if force else [])]
    words += [*options(opts), *operand("worktree_path", worktree_path), *operand("ref", ref)]
    return run(ctx, place(ctx, cwd, user), words, git_opts=git_opts, user=user, merged=True)


def worktree_prune(
    ctx: Context,
    cwd: str,
    dry_run: bool = False,
    verbose: bool = True,
    expire: str | None = None,
    opts: Words = "",
    git_opts: Words = "",
    user: str | None = None,
    password: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
) -> str:
    """Remove git's records of linked worktrees whose directories are missing. Return git's output: a line for each.

    dry_run
        True: only list these worktrees
    expire
        only worktrees that are older, such as ``1.week``

    CLI Example:

        salt '*' git.worktree_prune /srv/app
    """
    words = ["worktree", "prune", *(["--dry-run"] if dry_run else []), *(["--verbose"] if verbose else [])]
    words += [*(["--expire", str(expire)] if expire else []), *options(opts)]
    # git reports on standard error from 2.36 on, on standard output before.
    return run(ctx, place(ctx, cwd, user), words, git_opts=git_opts, user=user, merged=True)


def worktree_rm(
    ctx: Context,
    cwd: str,
    user: str | None = None,
    output_encoding: str | None = None,
) -> bool:
    """Remove the directory of a linked git worktree. Return True. Raise CommandError if the directory is no worktree
    or cannot be removed.

    CLI Example:

        salt '*' git.worktree_rm /srv/app-dev
    """
    directory = place(ctx, cwd, user)
    real_path = ctx.host.path(directory)
    if not real_path.exists():
        raise CommandError(f"{directory} does not exist")
    if not is_worktree(ctx, directory):
        raise CommandError(f"{directory} is not a git worktree")
    try:
        remove(real_path)
    except OSError as error:
        raise CommandError(f"Unable to remove {directory}: {error}") from error
    return True
