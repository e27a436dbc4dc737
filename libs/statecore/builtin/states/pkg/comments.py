"""Salt's comments of the ``pkg`` states, and the changes predicted in test mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from statecore.builtin.states.pkg import selection
from statecore.model.context import Context
from statecore.model.types import Outcome

#: Length in characters of a list of installed packages, and number of present packages, above which only a number is shown.
SHORT = 20

#: Number of up-to-date packages above which only a number is shown.
FEW = 10


@dataclass(frozen=True, slots=True)
class Repaired:
    """Altered files of reinstalled packages, as {package: {file: differences}}: before and after the reinstallation."""

    altered: Mapping[str, Mapping[str, Mapping[str, object]]]
    #: Package -> files that are still altered after the reinstallation.
    still: Mapping[str, Mapping[str, Mapping[str, object]]]


def kept(ctx: Context, *, hold: bool) -> str:
    """Return the end of Salt's comment for a package whose hold need not change, such as "already set to be held"."""
    if hold:
        return "already set to be held"
    return "not being held" if "pkg.list_holds" in ctx.functions else "already set not to be held"


def to_be_kept(ctx: Context, *, hold: bool) -> str:
    """Return the end of Salt's comment in test mode for a package to hold or release, such as "set to be held"."""
    if hold:
        return "set to be held"
    return "set to be unheld" if "pkg.list_holds" in ctx.functions else "set not to be held"


def nested(files: Mapping[str, Mapping[str, object]]) -> str:
    """Return altered files and their differences as text, in the layout of the outputter ``nested`` without colours."""
    lines = []
    for path, found in sorted(files.items()):
        lines += [f"{path}:", "    ----------"]
        for key, value in sorted(found.items()):
            rows = [f"        - {each}" for each in value] if isinstance(value, list) else [f"        {value}"]
            lines += [f"    {key}:", *rows]
    return "\n".join(lines)


def shown(package: str, version: str | None) -> str:
    """Return a package with its version or version condition, such as ``nginx=1.22``."""
    return f"{package}{'' if not version or version.startswith(('<', '>', '=')) else '='}{version or ''}"


def would_install(
    ctx: Context,
    targets: Mapping[str, object],
    again: Mapping[str, str | None],
    altered: Mapping[str, Mapping[str, Mapping[str, object]]],
    *,
    files: bool,
) -> tuple[str, dict[str, object]]:
    """Return (comment, predicted changes) of ``pkg.installed`` in test mode.

    Unspecified versions are predicted as the newest available.
    """
    lines = [f"The following packages would be installed/updated: {', '.join(targets)}"] if targets else []
    changes: dict[str, object] = {package: {"new": "installed", "old": ""} for package in targets}
    any_version = [package for package, version in targets.items() if not version and not files]
    if any_version:
        newest = selection.mapped(any_version, ctx.call("pkg.latest_version", *any_version, refresh=False))
        changes |= {package: {"new": newest.get(package) or "installed", "old": ""} for package in any_version}
    for package, found in altered.items():
        lines.append(
            f"Package '{shown(package, again[package])}' would be reinstalled because the following files have been altered:"
        )
        lines.append(nested(found))
        changes[package] = {}
    if again and not altered:
        names = [package if files else shown(package, version) for package, version in again.items()]
        lines.append(f"The following packages would be reinstalled: {', '.join(names)}")
        changes |= {package: {"new": "installed", "old": ""} for package in names}
    return "\n".join(lines), changes


def installed_outcome(
    desired: Mapping[str, str | None],
    targets: Mapping[str, object],
    again: Mapping[str, object],
    good: set[str],
    changes: Mapping[str, object],
    repaired: Repaired,
) -> Outcome:
    """Return the outcome of ``pkg.installed``. ``good``: packages that now have a wanted version."""

    def names(chosen: Sequence[str]) -> str:
        return ", ".join(shown(package, desired[package]) for package in chosen)

    modified = [package for package in targets if package in good]
    failed = [package for package in targets if package not in good]
    present = [package for package in desired if package in good and package not in targets and package not in again]
    lines = [f"The following packages failed to install/update: {names(failed)}"] if failed else []
    if modified and len(names(modified)) < SHORT:
        lines.append(f"The following packages were installed/updated: {names(modified)}")
    elif modified:
        several = "s were" if len(modified) > 1 else " was"
        lines.append(f"{len(modified)} targeted package{several} installed/updated.")
    if present and len(present) <= SHORT:
        lines.append(f"The following packages were already installed: {names(present)}")
    elif present:
        lines.append(f"{len(present)} targeted packages were already installed")
    missed = [package for package in again if package in repaired.still or package not in changes]
    for package in again:
        if package not in missed:
            sentences = [f"Package {names([package])} was reinstalled."]
            if package in repaired.altered:
                sentences = [f"{sentences[0]} The following files were remediated:", nested(repaired.altered[package])]
            lines += sentences
    for package in missed:
        sentences = [f"Reinstall was not successful for package {names([package])}."]
        if package in repaired.still:
            sentences = [
                f"{sentences[0]} The following files could not be remediated:",
                nested(repaired.still[package]),
            ]
        lines += sentences
    return Outcome("\n".join(lines), changes, ok=not failed and not missed)


def latest_outcome(
    targets: Mapping[str, str], current: Sequence[str], changes: Mapping[str, Mapping[str, object]]
) -> Outcome:
    """Return the outcome of ``pkg.latest``.

    ``targets``: map of package to the wanted new version; ``current``: packages already up to date.
    """
    failed = sorted(
        package
        for package, version in targets.items()
        if version not in str(changes.get(package, {}).get("new", "")).split(",")
    )
    done = sorted(set(targets) - set(failed))
    lines = []
    if failed and not changes:
        lines.append(
            f"Package {failed[0]} failed to update."
            if len(failed) == 1
            else f"The following targeted packages failed to update. See debug log for details: ({', '.join(failed)})."
        )
    elif failed:
        lines.append(f"The following packages failed to update: {', '.join(failed)}")
    if done:
        lines.append(f"The following packages were successfully installed/upgraded: {', '.join(done)}")
    if current:
        few = f"The following packages were already up-to-date: {', '.join(sorted(current))}"
        lines.append(few if len(current) <= FEW else f"{len(current)} packages were already up-to-date")
    return Outcome(" ".join(lines), changes, ok=not failed)


def all_current(names: Sequence[str]) -> str:
    """Return the comment of ``pkg.latest`` when all packages are up to date."""
    if len(names) == 1:
        return f"Package {names[0]} is already up-to-date"
    if len(names) > FEW:
        return f"All {len(names)} packages are up-to-date."
    return f"All packages are up-to-date ({', '.join(sorted(names))})."
