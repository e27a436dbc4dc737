"""Functions of ``git`` that make repositories, archives and submodules, and list changed files."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.errors import InvocationError
from statecore.system.git_commands import Words, address, operand, options, place, run

#: Sign of ``git status`` -> its name in the answer.
_STATUS = {"M": "modified", "A": "new", "D": "deleted", "??": "untracked"}


def init(
    ctx: Context,
    cwd: str,
    bare: bool = False,
    template: str | None = None,
    separate_git_dir: str | None = None,
    shared: object = None,
    opts: Words = "",
    git_opts: Words = "",
    user: str | None = None,
    password: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
) -> str:
    """Make a git repository in the directory ``cwd``. Return git's output, a sentence with the path. Raise
    CommandError if git fails.

    bare
        True: without a working tree
    template
        directory with files for the new repository
    separate_git_dir
        directory of the repository itself, if it is not ``.git`` in ``cwd``
    shared
        value of ``--shared``: a word such as ``group``, or a mode

    CLI Example:

        salt '*' git.init /srv/app.git bare=True
    """
    if isinstance(shared, int) and not isinstance(shared, bool):
        shared = f"0{shared}"
    words = ["init", *(["--bare"] if bare else [])]
    words += [f"--template={template}"] if template is not None else []
    words += [f"--separate-git-dir={separate_git_dir}"] if separate_git_dir is not None else []
    words += [f"--shared={shared if isinstance(shared, str) else str(shared).lower()}"] if shared is not None else []
    return run(ctx, None, [*words, *options(opts), place(ctx, cwd, user)], git_opts=git_opts, user=user)


def clone(
    ctx: Context,
    cwd: str,
    url: str | None = None,
    name: str | None = None,
    opts: Words = "",
    git_opts: Words = "",
    user: str | None = None,
    password: str | None = None,
    identity: object = None,
    https_user: str | None = None,
    https_pass: str | None = None,
    ignore_retcode: bool = False,
    saltenv: str = "base",
    output_encoding: str | None = None,
) -> bool:
    """Clone the git repository at ``url`` into ``cwd``, or into the directory ``name`` in it. Return True. Raise
    CommandError if git fails.

    https_user, https_pass
        login for an https URL

    CLI Example:

        salt '*' git.clone /srv/app https://git.example/app.git
    """
    if not url:
        raise InvocationError("Missing 'url' argument")
    directory = place(ctx, cwd, user)
    words = ["clone", *options(opts), "--", address(url, https_user, https_pass)]
    if name is not None:
        ctx.host.path(directory).mkdir(parents=True, exist_ok=True)
    words.append(directory if name is None else name)
    where = directory if name is not None else None
    run(ctx, where, words, git_opts=git_opts, user=user, identity=identity, saltenv=saltenv)
    return True


def archive(
    ctx: Context,
    cwd: str,
    output: str,
    rev: str = "HEAD",
    prefix: str | None = None,
    git_opts: Words = "",
    user: str | None = None,
    password: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
    format: str | None = None,
) -> bool:
    """Write the files of a revision of a git repository into an archive file. Return True. Raise CommandError if git
    fails.

    output
        path of the archive; its suffix says the format if ``format`` does not
    prefix
        directory for the files in the archive, with a slash at its end; "" for none. Default: the name of ``cwd``
    format
        such as ``tar.gz`` or ``zip``

    CLI Example:

        salt '*' git.archive /srv/app /tmp/app.tar.gz rev=v1
    """
    directory = place(ctx, cwd, user)
    inside = f"{directory.rpartition('/')[2]}/" if prefix is None else prefix
    words = ["archive", *(["--prefix", inside] if inside else []), *(["--format", format] if format else [])]
    words += ["--output", place(ctx, output, user), *operand("rev", rev)]
    run(ctx, directory, words, git_opts=git_opts, user=user)
    return True


def status(
    ctx: Context,
    cwd: str,
    user: str | None = None,
    password: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
) -> dict[str, list[str]]:
    """Return the changed files of a git worktree: a map with lists of modified, new, deleted and untracked files. Other
    changes have git's own signs as keys, such as ``MM`` or ``R``.

    CLI Example:

        salt '*' git.status /srv/app
    """
    found: dict[str, list[str]] = {}
    for entry in run(ctx, place(ctx, cwd, user), ["status", "-z", "--porcelain"], user=user).split("\0"):
        row = entry.split(None, 1)
        # The old name of a renamed file stands alone.
        if len(row) == 2:
            found.setdefault(_STATUS.get(row[0], row[0]), []).append(row[1])
    return found


def submodule(
    ctx: Context,
    cwd: str,
    command: str,
    opts: Words = "",
    git_opts: Words = "",
    user: str | None = None,
    password: str | None = None,
    identity: object = None,
    ignore_retcode: bool = False,
    saltenv: str = "base",
    output_encoding: str | None = None,
    init: bool = False,
) -> str:
    """Run ``git submodule`` with a command such as ``update``. Return git's output as text.

    CLI Example:

        salt '*' git.submodule /srv/app update opts='--init --recursive'
    """
    if init:
        raise InvocationError("The 'init' argument is no longer supported: include '--init' in 'opts'")
    words = ["submodule", *operand("command", command), *options(opts)]
    return run(ctx, place(ctx, cwd, user), words, git_opts=git_opts, user=user, identity=identity, saltenv=saltenv)
