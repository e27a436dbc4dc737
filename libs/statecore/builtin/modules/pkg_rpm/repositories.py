"""Functions of ``pkg`` for dnf's repositories: sections of ``.repo`` files."""

from __future__ import annotations

from statecore.builtin.modules.pkg_rpm import repo_files
from statecore.host.content import managed_file
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.hostfiles import yum_repos


def list_repos(ctx: Context, basedir: object = None, **kwargs: object) -> dict[str, dict[str, object]]:
    """Return a map of dnf repository to its options and to ``file``, the path of its file.

    basedir
        directories to search in place of dnf's

    CLI Example:

        salt '*' pkg.list_repos
    """
    return {
        name: {**options, "file": file}
        for file, text in repo_files.texts(ctx.host, basedir).items()
        for name, options in yum_repos.sections(text).items()
    }


def get_repo(ctx: Context, repo: str, basedir: object = None, **kwargs: object) -> dict[str, object]:
    """Return a map of option to value of a dnf repository; {} if the host does not have it.

    CLI Example:

        salt '*' pkg.get_repo updates
    """
    found = list_repos(ctx, basedir).get(repo, {})
    return {key: value for key, value in found.items() if key != "file"}


def repo_changes(ctx: Context, repo: str, **kwargs: object) -> dict[str, object]:
    """Return the changes that ``pkg.mod_repo`` would make to a dnf repository: {option: {"old", "new"}}. Return
    ``{"repo": repo}`` for a new one, {} for none.
    """
    return repo_files.plan(ctx.host, repo, kwargs).changes


def mod_repo(
    ctx: Context, repo: str, basedir: object = None, refresh: bool = True, **kwargs: object
) -> dict[str, object]:
    """Add or change a dnf repository. Return {file: {repository: options}}.

    name (or humanname), baseurl, mirrorlist, metalink, enabled, gpgcheck, gpgkey and others
        options of the section; an empty value removes the option. Exactly one of baseurl, mirrorlist and metalink is
        needed
    comments
        a list that replaces the comments of the section
    basedir
        the directory of the file for a new repository

    CLI Example:

        salt '*' pkg.mod_repo myrepo name='My repository' baseurl=https://x.test/repo enabled=1
    """
    plan = repo_files.plan(ctx.host, repo, {**kwargs, "basedir": basedir})
    if plan.text is not None:
        repo_files.write(ctx.host, plan.file, plan.text)
    return {plan.file: yum_repos.sections(repo_files.texts(ctx.host, basedir).get(plan.file, plan.text or ""))}


def del_repo(ctx: Context, repo: str, basedir: object = None, **kwargs: object) -> str:
    """Remove a dnf repository. An empty file is removed too. Return a sentence about the removal.

    Raise CommandError where the repository does not exist.

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
