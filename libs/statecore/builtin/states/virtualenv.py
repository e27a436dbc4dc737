"""Salt's ``virtualenv`` state: Python virtual environments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError, InvocationError
from statecore.model.types import Outcome, Plan, Step
from statecore.system.packages import python_versions

#: Argument of this state -> argument of ``pip.install``.
_OF_PIP: Mapping[str, str] = {
    "process_dependency_links": "process_dependency_links",
    "use_wheel": "use_wheel",
    "no_use_wheel": "no_use_wheel",
    "no_binary": "no_binary",
    "user": "user",
    "index_url": "index_url",
    "extra_index_url": "extra_index_url",
    "pip_download": "download",
    "pip_download_cache": "download_cache",
    "pre_releases": "pre_releases",
    "pip_exists_action": "exists_action",
    "pip_ignore_installed": "ignore_installed",
    "pip_upgrade": "upgrade",
    "no_deps": "no_deps",
    "proxy": "proxy",
    "env_vars": "env_vars",
    "pip_no_cache_dir": "no_cache_dir",
    "pip_cache_dir": "cache_dir",
    "find_links": "find_links",
    "no_index": "no_index",
    "use_vt": "use_vt",
}

#: Arguments that are passed to ``virtualenv.create``.
_OF_THE_ENVIRONMENT = (
    *("venv_bin", "system_site_packages", "distribute", "clear", "python", "extra_search_dir", "never_download"),
    *("prompt", "user", "pip", "symlinks", "upgrade", "use_vt"),
)


def managed(
    ctx: Context,
    name: str,
    venv_bin: str | None = None,
    requirements: object = None,
    system_site_packages: bool = False,
    distribute: bool = False,
    use_wheel: bool = False,
    clear: bool = False,
    python: str | None = None,
    extra_search_dir: object = None,
    never_download: bool | None = None,
    prompt: str | None = None,
    user: str | None = None,
    cwd: str | None = None,
    index_url: str | None = None,
    extra_index_url: object = None,
    pre_releases: bool = False,
    no_deps: bool = False,
    pip_download: str | None = None,
    pip_download_cache: str | None = None,
    pip_exists_action: str | None = None,
    pip_ignore_installed: bool = False,
    proxy: object = None,
    use_vt: bool = False,
    env_vars: object = None,
    no_use_wheel: bool = False,
    pip_upgrade: bool = False,
    pip_pkgs: object = None,
    pip_no_cache_dir: bool = False,
    pip_cache_dir: str | None = None,
    process_dependency_links: bool = False,
    no_binary: object = None,
    pip: bool = False,
    symlinks: bool | None = None,
    upgrade: bool | None = None,
    find_links: object = None,
    no_index: bool = False,
) -> Plan:
    """Create a Python virtual environment at ``name``, and install packages in it.

    venv_bin
        path of the virtualenv program; ``venv`` or a Python: use its module venv
    python
        Python of the environment
    requirements, pip_pkgs
        requirements files (may be ``salt://`` URLs); list of packages
    clear
        True: remove the content of an existing environment in each run
    find_links, no_index
        where pip searches packages

    All other arguments are options of virtualenv and of pip.
    """
    given = dict(locals())
    if wrong := _wrong(given):
        return Plan.failed(wrong)
    there = ctx.host.path(f"{name}/bin/python").exists()
    making = not there or clear
    try:
        wanted = _packages_wanted(ctx, given, anew=making)
        if refused := _refused(ctx, given) if there else "":
            return Plan.failed(refused)
    except (CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    if not making and not wanted:
        return Plan.unchanged("virtualenv exists")
    changes = _lost(ctx, name) if there and clear else {}
    would = f"Virtualenv {name} is set to be {'cleared' if there else 'created'}"
    if not making:
        would = "Packages are set to be installed in it"

    def make() -> Outcome:
        return _make(ctx, given, there=there)

    def fill() -> Outcome:
        return _fill(ctx, given)

    steps = [Step(f"make the environment {name}", make)] if making else []
    steps += [Step(f"install packages in {name}", fill)] if wanted else []
    return Plan.change(would, steps, changes, notes=() if making else ["virtualenv exists"])


manage = managed


def _wrong(given: Mapping[str, object]) -> str:
    if not str(given["name"]).startswith("/"):
        return f"'{given['name']}' is not an absolute path"
    if given["env_vars"] is not None and not isinstance(given["env_vars"], Mapping):
        return f"env_vars {given['env_vars']} is not a dictionary"
    if given["requirements"] is not None and not isinstance(given["requirements"], str | list):
        return "pip requirements must be either a string or a list"
    return ""


def _packages_wanted(ctx: Context, given: Mapping[str, object], *, anew: bool) -> bool:
    """Return True if pip has packages to install into the virtual environment. Raises CommandError for a missing
    requirements file.
    """
    requirements, named = given["requirements"], given["pip_pkgs"]
    if not (requirements or named):
        return False
    if anew:
        if requirements:
            ctx.call("pip._requirements_texts", requirements, cwd=given["cwd"])
        return True
    where = {"bin_env": given["name"], "user": given["user"]}
    met = not requirements or ctx.call("pip._requirements_met", requirements, cwd=given["cwd"], **where)
    if not met or given["pip_upgrade"] or given["pip_ignore_installed"] or given["pip_download"]:
        return True
    there = ctx.call("pip.list", **where) if named else {}
    try:
        each = [python_versions.requirement(str(one)) for one in _listed(named)]
    except ValueError as error:
        raise InvocationError(f"pip_pkgs: {error}") from error
    return not all(
        one.name in there and python_versions.fulfils(there[one.name], one.conditions, pre=True) for one in each
    )


def _refused(ctx: Context, given: Mapping[str, Any]) -> str:
    asked = {key: given[key] for key in ("use_wheel", "no_use_wheel", "no_binary")}
    if not any(asked.values()):
        return ""
    return python_versions.wheel_options_refused(ctx.call("pip.version", bin_env=given["name"]), **asked)


def _make(ctx: Context, given: Mapping[str, object], *, there: bool) -> Outcome:
    name = str(given["name"])
    changes: dict[str, object] = {}
    try:
        changes = _lost(ctx, name) if there else {}
        result = ctx.call("virtualenv.create", name, **{key: given[key] for key in _OF_THE_ENVIRONMENT})
    except (CommandError, InvocationError) as error:
        return Outcome(f"Failed to create virtualenv: {error}", ok=False)
    if result["retcode"]:
        return Outcome(result["stdout"] + result["stderr"], changes, ok=False)
    comment = "Cleared existing virtualenv" if given["clear"] else "Created new virtualenv"
    return Outcome(comment, {**changes, "new": _version(ctx, name)})


def _lost(ctx: Context, name: str) -> dict[str, object]:
    """Map of the changes to report for a virtual environment that is cleared: "cleared_packages" (its former packages) and
    "old" (its Python version).
    """
    try:
        packages = ctx.call("pip.freeze", bin_env=name)
    except CommandError:
        # The environment may have no pip.
        packages = []
    return {"cleared_packages": packages, "old": _version(ctx, name)}


def _fill(ctx: Context, given: Mapping[str, object]) -> Outcome:
    name = given["name"]
    where = {"bin_env": name, "user": given["user"]}
    try:
        if refused := _refused(ctx, given):
            return Outcome(refused, ok=False)
        before = set(ctx.call("pip.freeze", **where))
        result = ctx.call(
            "pip.install",
            pkgs=given["pip_pkgs"],
            requirements=given["requirements"],
            bin_env=name,
            cwd=given["cwd"],
            **{of: given[key] for key, of in _OF_PIP.items()},
        )
        after = set(ctx.call("pip.freeze", **where))
    except (CommandError, InvocationError) as error:
        return Outcome(str(error), ok=False)
    new, old = sorted(after - before), sorted(before - after)
    changes = {"packages": {"new": new or "", "old": old or ""}} if new or old else {}
    if result["retcode"]:
        return Outcome(f"{result['stdout']}\n{result['stderr']}", changes, ok=False)
    return Outcome("", changes)


def _version(ctx: Context, name: str) -> str:
    try:
        result = ctx.host.run([f"{name}/bin/python", "-V"])
    except HostError as error:
        return str(error)
    return (result.stdout or result.stderr).strip()


def _listed(named: object) -> list[object]:
    if isinstance(named, list):
        return named
    return [*str(named).split(",")] if named else []
