"""Salt's ``pip`` states: Python packages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from packaging.utils import canonicalize_name

from statecore.builtin.states.pip import files, packages
from statecore.builtin.states.pip.packages import WantedPipPackages, output, package
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.types import Outcome, Plan, Step
from statecore.system.packages import python_versions

#: Salt's arguments that are not supported -> reason.
_UNSUPPORTED: Mapping[str, str] = {
    "repo": "it has no effect in Salt; use index_url, find_links or editable",
}


def installed(
    ctx: Context,
    name: str,
    pkgs: object = None,
    pip_bin: str | None = None,
    requirements: object = None,
    bin_env: str | None = None,
    use_wheel: bool = False,
    no_use_wheel: bool = False,
    log: str | None = None,
    proxy: object = None,
    timeout: int | str | None = None,
    repo: object = None,
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
    install_options: object = None,
    global_options: object = None,
    user: str | None = None,
    cwd: str | None = None,
    pre_releases: bool = False,
    cert: str | None = None,
    allow_all_external: bool = False,
    allow_external: object = None,
    allow_unverified: object = None,
    process_dependency_links: bool = False,
    env_vars: object = None,
    use_vt: bool = False,
    trusted_host: str | None = None,
    no_cache_dir: bool = False,
    cache_dir: str | None = None,
    no_binary: object = None,
    extra_args: object = None,
) -> Plan:
    """Install Python packages with pip, in a version that meets the conditions (``django >= 1.6, <= 1.7``).

    pkgs
        list of requirements, in place of ``name``
    requirements
        requirements file or list of them; may be ``salt://`` URLs. Used in place of packages.
    editable
        directory or VCS URL to install in editable mode, in place of packages
    bin_env
        virtual environment, or path of a Python or pip. Default: the Python that runs this minion; for a mounted host
        the
        host's own Python.
    upgrade
        True: install the newest version that meets the conditions
    force_reinstall, ignore_installed
        True: install again even if already installed

    All other arguments are options of pip.
    """
    given = {key: value for key, value in locals().items() if key not in ("ctx", "name", "pip_bin", "repo")}
    for argument, reason in _UNSUPPORTED.items():
        if locals()[argument]:
            return Plan.failed(f"not supported: {argument}; {reason}")
    if pkgs and not isinstance(pkgs, list):
        return Plan.failed("pkgs argument must be formatted as a list")
    if env_vars is not None and not isinstance(env_vars, Mapping):
        return Plan.failed(f"env_vars {env_vars} is not a dictionary")
    given["bin_env"] = bin_env = bin_env or pip_bin
    given |= {"disable_version_check": True, "saltenv": ctx.saltenv}
    try:
        version = ctx.call("pip.version", bin_env, cwd, user) if not user else _version_as(ctx, bin_env, cwd, user)
    except CommandError as error:
        return Plan.failed(f"Error installing '{name}': {error}")
    if refused := _refused(version, given):
        return Plan.failed(refused)
    if user and not ctx.call("user.info", user):
        return Plan.failed(f"User {user} does not exist")
    request = WantedPipPackages(ctx, given)
    if requirements or editable:
        return files.plan(request)
    try:
        named = [package(each) for each in (pkgs if isinstance(pkgs, Iterable) and pkgs else [name])]
    except ValueError as error:
        return Plan.failed(str(error))
    return packages.plan(request, named)


def removed(
    ctx: Context,
    name: str,
    requirements: object = None,
    bin_env: str | None = None,
    log: str | None = None,
    proxy: object = None,
    timeout: int | str | None = None,
    user: str | None = None,
    cwd: str | None = None,
    use_vt: bool = False,
) -> Plan:
    """Uninstall a Python package with pip. Nothing happens if it is not installed."""
    where = {"bin_env": bin_env, "user": user, "cwd": cwd}
    normal = canonicalize_name(name)
    try:
        listed = ctx.call("pip.list", **where)
    except CommandError as error:
        return Plan.failed(f"Error uninstalling '{name}': {error}")
    if normal not in listed:
        return Plan.unchanged("Package is not installed.")

    def work() -> Outcome:
        options = {"requirements": requirements, "log": log, "proxy": proxy, "timeout": timeout, "use_vt": use_vt}
        try:
            result = ctx.call("pip.uninstall", pkgs=name, **where, **options)
        except (CommandError, InvocationError) as error:
            return Outcome(f"Could not remove package. {error}", ok=False)
        if result["retcode"] or normal in ctx.call("pip.list", **where):
            return Outcome(f"Could not remove package. Error: {output(result)}", ok=False)
        return Outcome("Package was successfully removed.", {name: "Removed"})

    return Plan.change(f"Package {name} is set to be removed", [Step(f"remove {name}", work)])


def uptodate(
    ctx: Context,
    name: str,
    bin_env: str | None = None,
    user: str | None = None,
    cwd: str | None = None,
    use_vt: bool = False,
) -> Plan:
    """Upgrade all installed Python packages to the newest version with pip. ``name`` is not used."""
    where = {"bin_env": bin_env, "user": user, "cwd": cwd}
    try:
        newer = ctx.call("pip.list_upgrades", **where)
    except CommandError as error:
        return Plan.failed(str(error))
    if not newer:
        return Plan.unchanged("System is already up-to-date.")

    def work() -> Outcome:
        done = ctx.call("pip.upgrade", **where, use_vt=use_vt)
        comment = "Upgrade successful." if done["result"] else f"Failed to update. {done['comment']}"
        return Outcome(comment, done["changes"], ok=done["result"])

    return Plan.change("System update will be performed", [Step("upgrade all packages", work)])


def _version_as(ctx: Context, bin_env: str | None, cwd: str | None, user: str) -> str:
    """Return the version of pip, run as the user of the state.

    For an unknown user, do not run pip as this user: ``installed`` reports the missing user later.
    """
    known = bool(ctx.call("user.info", user))
    return str(ctx.call("pip.version", bin_env, cwd if known else None, user if known else None))


def _refused(version: str, given: Mapping[str, Any]) -> str:
    names = ("use_wheel", "no_use_wheel", "no_binary")
    return python_versions.wheel_options_refused(version, **{name: given[name] for name in names})
