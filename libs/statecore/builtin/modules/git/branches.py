"""Functions of ``git`` for branches, tags, symbolic refs and resets, and for checking out revisions."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.errors import InvocationError
from statecore.model.text_lines import lines_of
from statecore.system.git_commands import Words, operand, options, place, run


def branch(
    ctx: Context,
    cwd: str,
    name: str | None = None,
    opts: Words = "",
    git_opts: Words = "",
    user: str | None = None,
    password: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
) -> bool:
    """Run ``git branch`` with the options ``opts``, such as ``-d`` to delete the branch ``name``. Return True. Raise
    CommandError if git fails.

    CLI Example:

        salt '*' git.branch /srv/app new
    """
    words = ["branch", *options(opts), *operand("name", name)]
    run(ctx, place(ctx, cwd, user), words, git_opts=git_opts, user=user)
    return True


def checkout(
    ctx: Context,
    cwd: str,
    rev: str | None = None,
    force: bool = False,
    opts: Words = "",
    git_opts: Words = "",
    user: str | None = None,
    password: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
) -> str:
    """Check out a revision of a git repository. Return git's output as text. Raise CommandError if git fails.

    force
        True: discard local changes

    CLI Example:

        salt '*' git.checkout /srv/app v1
    """
    words = ["checkout", *(["--force"] if force else []), *options(opts)]
    if rev is None and not {"-b", "-B"}.intersection(words):
        raise InvocationError("'rev' argument is required unless -b or -B in opts")
    words += operand("rev", rev)
    return run(ctx, place(ctx, cwd, user), words, git_opts=git_opts, user=user, merged=True)


def discard_local_changes(
    ctx: Context,
    cwd: str,
    path: str = ".",
    user: str | None = None,
    password: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
) -> str:
    """Discard changes of tracked files that are not staged, below ``path``. Return git's output as text.

    CLI Example:

        salt '*' git.discard_local_changes /srv/app conf
    """
    return run(ctx, place(ctx, cwd, user), ["checkout", "--", path], user=user, merged=True)


def current_branch(
    ctx: Context,
    cwd: str,
    user: str | None = None,
    password: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
) -> str:
    """Return the name of the branch that is checked out in a git repository, ``HEAD`` if there is none.

    CLI Example:

        salt '*' git.current_branch /srv/app
    """
    return run(ctx, place(ctx, cwd, user), ["rev-parse", "--abbrev-ref", "HEAD"], user=user)


def list_branches(
    ctx: Context,
    cwd: str,
    remote: bool = False,
    user: str | None = None,
    password: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
) -> list[str]:
    """Return the names of the local branches of a git repository, or with ``remote`` of the remote-tracking branches.

    CLI Example:

        salt '*' git.list_branches /srv/app remote=True
    """
    refs = f"refs/{'remotes' if remote else 'heads'}/"
    return lines_of(run(ctx, place(ctx, cwd, user), ["for-each-ref", "--format=%(refname:short)", refs], user=user))


def list_tags(
    ctx: Context,
    cwd: str,
    user: str | None = None,
    password: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
) -> list[str]:
    """Return the names of the tags of a git repository.

    CLI Example:

        salt '*' git.list_tags /srv/app
    """
    words = ["for-each-ref", "--format=%(refname:strip=2)", "refs/tags/"]
    return lines_of(run(ctx, place(ctx, cwd, user), words, user=user))


def tag(
    ctx: Context,
    cwd: str,
    name: str,
    ref: str = "HEAD",
    message: str | None = None,
    opts: Words = "",
    git_opts: Words = "",
    user: str | None = None,
    password: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
) -> str:
    """Make a git tag at the revision ``ref``, or delete one with ``opts='-d'``. Return git's output as text.

    message
        text of an annotated tag

    CLI Example:

        salt '*' git.tag /srv/app v1 message='Version 1'
    """
    given = [each for each in options(opts) if each not in ("-a", "--annotate")]
    if any(each == "-m" or "--message" in each for each in given):
        raise InvocationError('Tag messages must be passed in the "message" argument')
    words = ["tag", *(["-a", "-m", str(message)] if message is not None else []), *given, *operand("name", name)]
    words += [] if {"-d", "--delete"}.intersection(given) else operand("ref", ref)
    return run(ctx, place(ctx, cwd, user), words, git_opts=git_opts, user=user, merged=True)


def symbolic_ref(
    ctx: Context,
    cwd: str,
    ref: str,
    value: str | None = None,
    opts: Words = "",
    git_opts: Words = "",
    user: str | None = None,
    password: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
) -> str:
    """Return the name of the ref that a symbolic ref such as ``HEAD`` points to, or set it to ``value``.
    ``opts='--delete'`` deletes the symbolic ref.

    CLI Example:

        salt '*' git.symbolic_ref /srv/app HEAD refs/heads/main
    """
    words = options(opts)
    if value is not None and {"-d", "--delete"}.intersection(words):
        raise InvocationError("Value cannot be set for symbolic ref if -d/--delete is included in opts")
    words = ["symbolic-ref", *words, *operand("ref", ref), *operand("value", value)]
    return run(ctx, place(ctx, cwd, user), words, git_opts=git_opts, user=user)


def reset(
    ctx: Context,
    cwd: str,
    opts: Words = "",
    git_opts: Words = "",
    user: str | None = None,
    password: str | None = None,
    identity: object = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
) -> str:
    """Run ``git reset`` with the options ``opts``. Return git's output as text.

    CLI Example:

        salt '*' git.reset /srv/app opts='--hard origin/main'
    """
    return run(ctx, place(ctx, cwd, user), ["reset", *options(opts)], git_opts=git_opts, user=user, identity=identity)
