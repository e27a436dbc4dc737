"""``pip.installed`` with requirements files or editable packages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecore.builtin.states.pip.packages import WantedPipPackages, said
from statecore.model.errors import CommandError, InvocationError
from statecore.model.types import Outcome, Plan, Step


def plan(wish: WantedPipPackages) -> Plan:
    """Return a plan for requirements files and editable packages."""
    requirements, editable = wish.given["requirements"], wish.given["editable"]
    try:
        if (not requirements or _met(wish)) and (not editable or _in_place(wish)):
            told = ["Requirements were already installed."] if requirements else []
            told += [f"Package is already installed in editable mode from {editable}."] if editable else []
            return Plan.unchanged(" ".join(told))
    except (CommandError, InvocationError) as error:
        return Plan.failed(_unable(requirements, editable, str(error)))
    would = [f"Requirements file '{requirements}' will be processed."] if requirements else []
    if editable:
        would.append(f'Package will be installed in editable mode (i.e. setuptools "develop mode") from {editable}.')

    def work() -> Outcome:
        before = wish.listed()
        result = wish.install(())
        if result["retcode"]:
            return Outcome(_unable(requirements, editable, said(result)), ok=False)
        changes: dict[str, Any] = {}
        told = []
        if requirements:
            new = wish.listed() != before or "Successfully installed" in str(result["stdout"])
            changes |= {"requirements": True} if new else {}
            told.append(
                f"Successfully processed requirements file {requirements}."
                if new
                else "Requirements were already installed."
            )
        if editable:
            changes["editable"] = True
            told.append(f"Package successfully installed from VCS checkout {editable}.")
        return Outcome(" ".join(told), changes)

    return Plan.change(" ".join(would), [Step(f"install {requirements or editable}", work)])


def _unable(requirements: Any, editable: Any, error: str) -> str:
    parts = [f'Unable to process requirements file "{requirements}"'] if requirements else []
    parts += [f"Unable to install from VCS checkout {editable}."] if editable else []
    return " ".join([*parts, f"Error: {error}"])


def _met(wish: WantedPipPackages) -> bool:
    """Whether all requirements of the files are met. False if a line can only be judged by pip."""
    where = {key: wish.given[key] for key in ("bin_env", "user", "cwd", "env_vars", "saltenv")}
    met = wish.ctx.call("pip.requirements_met", wish.given["requirements"], **where)
    return bool(met) and not _anew(wish.given)


def _anew(given: Mapping[str, Any]) -> bool:
    return any(given[key] for key in ("upgrade", "force_reinstall", "ignore_installed", "target", "download"))


def _in_place(wish: WantedPipPackages) -> bool:
    """Whether all editable packages are directories of the host that are already installed in editable mode."""
    given = wish.given
    if _anew(given):
        return False
    value = given["editable"]
    entries = value if isinstance(value, list) else str(value).split(",")
    places = [str(each).strip().removeprefix("file://").partition("#")[0].rstrip("/") for each in entries]
    if not all(place.startswith("/") for place in places):
        return False
    where = {key: given[key] for key in ("bin_env", "user", "cwd", "env_vars")}
    known = wish.ctx.call("pip.list_editable", **where)
    return all(place in known for place in places)
