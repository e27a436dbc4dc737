"""Where dnf gets packages from: sections of ``.repo`` files."""

from __future__ import annotations

from typing import Any

from statecore.builtin.modules.pkg_rpm import repo_files
from statecore.host.content import managed_file
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.hostfiles import yum_repos


def list_repos(ctx: Context, basedir: Any = None, **kwargs: Any) -> dict[str, dict[str, Any]]:
    """Repository -> its options, and ``file``, the file that it is in.

    basedir
        directories that are looked in, in place of those that dnf looks in

    CLI Example:

        salt '*' pkg.list_repos
    """
    return {
        name: {**options, "file": file}
        for file, text in repo_files.texts(ctx.host, basedir).items()
        for name, options in yum_repos.sections(text).items()
    }


def get_repo(ctx: Context, repo: str, basedir: Any = None, **kwargs: Any) -> dict[str, Any]:
    """The options of a repository, {} where there is none.

    CLI Example:

        salt '*' pkg.get_repo updates
    """
    found = list_repos(ctx, basedir).get(repo, {})
    return {key: value for key, value in found.items() if key != "file"}


def repo_changes(ctx: Context, repo: str, **kwargs: Any) -> dict[str, Any]:
    """What ``mod_repo`` would change, by option, with old and new; ``{"repo": repo}`` for a new one, {} for nothing."""
    return repo_files.plan(ctx.host, repo, kwargs).changes


def mod_repo(ctx: Context, repo: str, basedir: Any = None, refresh: bool = True, **kwargs: Any) -> dict[str, Any]:
    """Sets options of a repository, a new one where there is none; {file: repository -> options}.

    name (or humanname), baseurl, mirrorlist, metalink, enabled, gpgcheck, gpgkey and others
        options of the section; what is empty is removed. Of the first three after the name there is to be one
    comments
        a list, in place of the comments of the section
    basedir
        the directory that a new one is written to

    CLI Example:

        salt '*' pkg.mod_repo myrepo name='My repository' baseurl=https://x.test/repo enabled=1
    """
    plan = repo_files.plan(ctx.host, repo, {**kwargs, "basedir": basedir})
    if plan.text is not None:
        repo_files.write(ctx.host, plan.file, plan.text)
    return {plan.file: yum_repos.sections(repo_files.texts(ctx.host, basedir).get(plan.file, plan.text or ""))}


def del_repo(ctx: Context, repo: str, basedir: Any = None, **kwargs: Any) -> str:
    """Removes a repository; a file in which nothing is left goes too.

    CLI Example:

        salt '*' pkg.del_repo myrepo
    """
    for file, text in repo_files.texts(ctx.host, basedir).items():
        if repo not in yum_repos.sections(text):
            continue
        left = yum_repos.without(text, repo)
        if yum_repos.sections(left):
            repo_files.write(ctx.host, file, left)
            return f"Repo {repo} has been removed from {file}"
        managed_file.remove(ctx.host.path(file))
        return f"File {file} containing repo {repo} has been removed"
    raise CommandError(f"the {repo} repo does not exist in {', '.join(repo_files.directories(ctx.host, basedir))}")
