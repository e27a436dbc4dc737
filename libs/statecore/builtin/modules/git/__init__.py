"""Git repositories on the managed host, through its ``git`` program: Salt's ``git`` execution module.

Arguments of most functions: ``cwd`` is the directory of the repository; a relative path begins in the home of ``user``, who
runs git (but ``config_get``, ``config_get_regexp``, ``diff`` and ``remote_set`` refuse it, as in Salt). ``opts`` are options
of git's subcommand, ``git_opts`` options before it, as text or as a list. ``identity`` is the path of an SSH key without a
passphrase (also ``salt://``), or a list of such paths; ``saltenv`` is its environment. ``password``, ``ignore_retcode`` and
``output_encoding`` are accepted and not used. A failure of git raises CommandError with git's error output.
"""

from __future__ import annotations

from statecore.builtin.modules.git import branches, commits, configuration, remotes, repositories, revisions, worktrees
from statecore.model.context import Context
from statecore.system import git_commands

#: The modules that define the functions of ``git``.
PARTS = (repositories, remotes, branches, commits, revisions, configuration, worktrees)

ALIASES = {"rm": "rm_", "config_get_regex": "config_get_regexp", "config_get_regexp": "config_get_regexp"}

rm_ = commits.rm_
config_get_regexp = configuration.config_get_regexp


def available(ctx: Context) -> str | None:
    """Return None if the host has the program ``git``; else return the reason as text."""
    return None if ctx.host.which("git") else "the host has no program git"


def version(ctx: Context, versioninfo: bool = False) -> object:
    """Return the version of the host's git as text, or with ``versioninfo`` as a list of numbers.

    CLI Example:

        salt '*' git.version
    """
    text = git_commands.run(ctx, None, ["--version"]).partition("(")[0].split()[-1]
    return [int(part) if part.isdecimal() else part for part in text.split(".")] if versioninfo else text
