"""Functions of ``pip`` that install, upgrade and remove packages."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from packaging.utils import canonicalize_name

from statecore.builtin.modules.pip import cli_options, program, queries, requirements
from statecore.model.context import Context


def install(
    ctx: Context,
    pkgs: object = None,
    requirements: str | Sequence[str] | None = None,
    bin_env: str | None = None,
    use_wheel: bool = False,
    no_use_wheel: bool = False,
    log: str | None = None,
    proxy: object = None,
    timeout: int | str | None = None,
    editable: object = None,
    find_links: object = None,
    index_url: str | None = None,
    extra_index_url: object = None,
    no_index: bool = False,
    mirrors: object = None,
    build: str | None = None,
    target: str | None = None,
    download: str | None = None,
    download_cache: str | None = None,
    source: str | None = None,
    upgrade: bool = False,
    force_reinstall: bool = False,
    ignore_installed: bool = False,
    exists_action: str | None = None,
    no_deps: bool = False,
    no_install: bool = False,
    no_download: bool = False,
    global_options: object = None,
    install_options: object = None,
    user: str | None = None,
    cwd: str | None = None,
    pre_releases: bool = False,
    cert: str | None = None,
    allow_all_external: bool = False,
    allow_external: object = None,
    allow_unverified: object = None,
    process_dependency_links: bool = False,
    saltenv: str | None = None,
    env_vars: dict[str, object] | None = None,
    use_vt: bool = False,
    trusted_host: str | None = None,
    no_cache_dir: bool = False,
    extra_args: object = None,
    cache_dir: str | None = None,
    no_binary: object = None,
    disable_version_check: bool = False,
) -> dict[str, object]:
    """Install Python packages, the packages of requirements files, and editable packages. Return a map with pip's
    retcode, stdout and stderr.

    ``pkgs`` is comma-separated text or a list. Options are passed to pip, which reports unknown ones. Requirements
    files may be salt:// URLs.

    CLI Example:

        salt '*' pip.install markdown,django bin_env=/opt/venv
    """
    given = dict(locals())
    version = program.version(ctx, bin_env, cwd, user)
    first = [*program.argv(ctx, bin_env), "install"]
    words = cli_options.install_words(ctx, given, version)
    files = _files(requirements)
    if not (cli_options.split(pkgs) or files or cli_options.split(editable)):
        return {"retcode": 0, "stdout": "No packages to install."}
    with _readable(ctx, files, user, cwd, saltenv) as paths:
        options = [word for path in paths for word in ("--requirement", path)]
        try:
            return program.run(ctx, [*first, *options, *words], bin_env, user, cwd, env_vars, use_vt=use_vt)
        finally:
            program.forget_version(ctx, bin_env)


def uninstall(
    ctx: Context,
    pkgs: object = None,
    requirements: str | Sequence[str] | None = None,
    bin_env: str | None = None,
    log: str | None = None,
    proxy: object = None,
    timeout: int | str | None = None,
    user: str | None = None,
    cwd: str | None = None,
    saltenv: str | None = None,
    use_vt: bool = False,
    extra_args: object = None,
) -> dict[str, object]:
    """Remove Python packages, and the packages of requirements files. Return a map with pip's retcode, stdout and
    stderr.

    CLI Example:

        salt '*' pip.uninstall markdown,django bin_env=/opt/venv
    """
    words = cli_options.common_options(ctx, {"log": log, "proxy": proxy, "timeout": timeout})
    first = [*program.argv(ctx, bin_env), "uninstall", "-y"]
    with _readable(ctx, _files(requirements), user, cwd, saltenv) as paths:
        options = [word for path in paths for word in ("--requirement", path)]
        try:
            named = [*cli_options.split(pkgs), *cli_options.extra_words(extra_args)]
            return program.run(ctx, [*first, *options, *words, *named], bin_env, user, cwd, use_vt=use_vt)
        finally:
            program.forget_version(ctx, bin_env)


def upgrade(
    ctx: Context,
    bin_env: str | None = None,
    user: str | None = None,
    cwd: str | None = None,
    use_vt: bool = False,
) -> dict[str, object]:
    """Upgrade all Python packages of an environment that have a newer version.

    Return a map with ``changes`` ({package: {"old": version, "new": version}}), ``result`` (bool) and
    ``comment`` (pip's stderr).

    CLI Example:

        salt '*' pip.upgrade bin_env=/opt/venv
    """
    first = [*program.argv(ctx, bin_env), "install", "-U", "--disable-pip-version-check"]
    before = queries.list_(ctx, bin_env=bin_env, user=user, cwd=cwd)
    results = [
        program.run(ctx, [*first, name], bin_env, user, cwd, use_vt=use_vt)
        for name in queries.list_upgrades(ctx, bin_env=bin_env, user=user, cwd=cwd)
    ]
    program.forget_version(ctx, bin_env)
    after = queries.list_(ctx, bin_env=bin_env, user=user, cwd=cwd)
    changes = {
        name: {"old": before.get(name, ""), "new": after.get(name, "")}
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    }
    # A terminal joins errors and output.
    comment = "".join(result["stdout" if use_vt and result["retcode"] else "stderr"] for result in results)
    return {"changes": changes, "result": not any(result["retcode"] for result in results), "comment": comment}


def normalize(ctx: Context, name: str) -> str:
    """Return the normalized name of a Python package (PEP 503): lower case, with "-" for runs of "-", "_" and ".".

    CLI Example:

        salt '*' pip.normalize requests_ntlm
    """
    return canonicalize_name(name)


def _files(value: str | Sequence[str] | None) -> list[str]:
    return requirements.listed(value)


def _readable(
    ctx: Context, files: Sequence[str], user: str | None, cwd: str | None, saltenv: str | None
) -> AbstractContextManager[list[str]]:
    if user is not None:
        # An unknown user is an error before any file is copied.
        ctx.host.uid(user)
    return requirements.readable(ctx, files, user, cwd, saltenv or ctx.saltenv)
