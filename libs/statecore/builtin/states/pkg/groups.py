"""The state ``pkg.group_installed``: installs groups of packages (RPM)."""

from __future__ import annotations

from statecore.builtin.states.pkg import actions, selection
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Outcome, Plan, Step


def group_installed(
    ctx: Context,
    name: str,
    skip: list[str] | None = None,
    include: list[str] | None = None,
    fromrepo: str | None = None,
    enablerepo: object = None,
    disablerepo: object = None,
    disableexcludes: str | None = None,
    branch: str | None = None,
    setopt: object = None,
    skip_verify: bool | None = None,
    update_holds: bool | None = None,
) -> Plan:
    """Install the mandatory and default packages of a package group.

    skip
        list of default packages that are not installed
    include
        list of additional packages to install
    """
    if "pkg.group_diff" not in ctx.functions:
        return Plan.failed("pkg.group_install not available for this platform")
    for argument, value in (("skip", skip), ("include", include)):
        if value is not None and not isinstance(value, list):
            return Plan.failed(f"{argument} must be formatted as a list")
    left_out, besides = [str(each) for each in skip or ()], [str(each) for each in include or ()]
    repositories = selection.given(
        fromrepo=fromrepo,
        enablerepo=enablerepo,
        disablerepo=disablerepo,
        disableexcludes=disableexcludes,
        branch=branch,
        setopt=setopt,
    )
    try:
        found = ctx.call("pkg.group_diff", name, **repositories)
    except CommandError as error:
        return Plan.failed(f"An error was encountered while installing/updating group '{name}': {error}.")
    mandatory = [*found["mandatory"]["installed"], *found["mandatory"]["not installed"]]
    if needed := [package for package in mandatory if package in left_out]:
        return Plan.failed(f"The following mandatory packages cannot be skipped: {', '.join(needed)}")
    there = ctx.call("pkg.list_pkgs")
    required = [*found["mandatory"]["not installed"], *(package for package in besides if package not in there)]
    targets = [*required, *(package for package in found["default"]["not installed"] if package not in left_out)]
    if not targets:
        return Plan.unchanged(f"Group '{name}' is already installed")
    partial = any(found[kind]["installed"] for kind in ("mandatory", "default", "optional"))

    def work() -> Outcome:
        options = selection.given(skip_verify=skip_verify, update_holds=update_holds, **repositories)
        changes = ctx.call("pkg.install", pkgs=targets, **options)
        now = ctx.call("pkg.list_pkgs")
        if failed := [package for package in required if package not in now]:
            return Outcome(f"Failed to install the following packages: {', '.join(failed)}", changes, ok=False)
        return Outcome(f"Group '{name}' was {'updated' if partial else 'installed'}", changes)

    step = Step(
        f"install {', '.join(targets)}", lambda: actions.run_guarded(work, f"installing/updating group '{name}'")
    )
    would = "is partially installed and will be updated" if partial else "will be installed"
    predicted = {package: {"new": "installed", "old": ""} for package in targets}
    return Plan.change(f"Group '{name}' {would}", [step], predicted)
