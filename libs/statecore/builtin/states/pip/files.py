"""The state ``pip.installed`` for requirements files and editable packages."""

from __future__ import annotations

from collections.abc import Mapping

from statecore.builtin.states.pip.packages import WantedPipPackages, output
from statecore.model.errors import CommandError, InvocationError
from statecore.model.types import Outcome, Plan, Step


def plan(request: WantedPipPackages) -> Plan:
    """Return the plan of ``pip.installed`` for requirements files and editable packages; a plan without steps if all are
    installed.
    """
    requirements, editable = request.given["requirements"], request.given["editable"]
    try:
        if (not requirements or _requirements_met(request)) and (not editable or _editable_installed(request)):
            lines = ["Requirements were already installed."] if requirements else []
            lines += [f"Package is already installed in editable mode from {editable}."] if editable else []
            return Plan.unchanged(" ".join(lines))
    except (CommandError, InvocationError) as error:
        return Plan.failed(_unable(requirements, editable, str(error)))
    would = [f"Requirements file '{requirements}' will be processed."] if requirements else []
    if editable:
        would.append(f'Package will be installed in editable mode (i.e. setuptools "develop mode") from {editable}.')

    def work() -> Outcome:
        before = request.listed()
        result = request.install(())
        if result["retcode"]:
            return Outcome(_unable(requirements, editable, output(result)), ok=False)
        changes: dict[str, object] = {}
        lines = []
        if requirements:
            new = request.listed() != before or "Successfully installed" in str(result["stdout"])
            changes |= {"requirements": True} if new else {}
            lines.append(
                f"Successfully processed requirements file {requirements}."
                if new
                else "Requirements were already installed."
            )
        if editable:
            changes["editable"] = True
            lines.append(f"Package successfully installed from VCS checkout {editable}.")
        return Outcome(" ".join(lines), changes)

    return Plan.change(" ".join(would), [Step(f"install {requirements or editable}", work)])


def _unable(requirements: object, editable: object, error: str) -> str:
    parts = [f'Unable to process requirements file "{requirements}"'] if requirements else []
    parts += [f"Unable to install from VCS checkout {editable}."] if editable else []
    return " ".join([*parts, f"Error: {error}"])


def _requirements_met(request: WantedPipPackages) -> bool:
    """Return True if all requirements of the requirements files are met. False if a line can only be judged by pip."""
    where = {key: request.given[key] for key in ("bin_env", "user", "cwd", "env_vars", "saltenv")}
    met = request.ctx.call("pip._requirements_met", request.given["requirements"], **where)
    return bool(met) and not _install_again(request.given)


def _install_again(given: Mapping[str, object]) -> bool:
    return any(given[key] for key in ("upgrade", "force_reinstall", "ignore_installed", "target", "download"))


def _editable_installed(request: WantedPipPackages) -> bool:
    """Return True if all editable packages are directories of the host that are already installed in editable mode."""
    given = request.given
    if _install_again(given):
        return False
    value = given["editable"]
    entries = value if isinstance(value, list) else str(value).split(",")
    places = [str(each).strip().removeprefix("file://").partition("#")[0].rstrip("/") for each in entries]
    if not all(place.startswith("/") for place in places):
        return False
    where = {key: given[key] for key in ("bin_env", "user", "cwd", "env_vars")}
    known = request.ctx.call("pip._list_editable", **where)
    return all(place in known for place in places)
