"""The state ``pip.installed`` for packages given by name: the requirements, and the plan that installs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.text_lines import lines_of
from statecore.model.types import Outcome, Plan, Step
from statecore.system.packages import python_versions


@dataclass(frozen=True, slots=True)
class PipPackage:
    """One requirement of ``pip.installed``. ``name`` is "" if the package's name is unknown before the installation,
    such as for a URL.
    """

    text: str
    name: str
    conditions: SpecifierSet


@dataclass(frozen=True, slots=True)
class WantedPipPackages:
    """The arguments of ``pip.installed`` under the names that ``pip.install`` takes, and calls of ``pip`` functions with them."""

    ctx: Context
    given: Mapping[str, object]

    def listed(self, prefix: str | None = None) -> dict[str, str]:
        """Map of installed Python package to version, in the ``target`` directory if one is given."""
        names = ("bin_env", "user", "cwd", "env_vars", "target")
        found: dict[str, str] = self.ctx.call("pip.list", prefix, **{key: self.given[key] for key in names})
        return found

    def install(self, packages: Sequence[PipPackage]) -> dict[str, object]:
        """Install Python packages and return the result of ``pip.install``, a map with retcode, stdout and stderr.

        An invalid argument gives retcode 1, as a failure of pip does.
        """
        pkgs = [each.text for each in packages] or None
        try:
            result: dict[str, object] = self.ctx.call("pip.install", **{**self.given, "pkgs": pkgs})
        except (CommandError, InvocationError) as error:
            return {"retcode": 1, "stdout": "", "stderr": str(error)}
        return result


def package(each: object) -> PipPackage:
    """Return the PipPackage for one item of ``pkgs``: a text such as ``django>=4``, or a map of one name to its
    conditions. Raise ValueError if the item is neither.
    """
    text = str(each)
    if isinstance(each, Mapping):
        if len(each) != 1:
            raise ValueError(
                f"pkgs: {dict(each)} is not a requirement: write a name, or a map of one name to its conditions"
            )
        text = " ".join(map(str, next(iter(each.items()))))
    wanted = python_versions.requirement(text)
    return PipPackage(text, wanted.name, wanted.conditions)


def output(result: Mapping[str, object]) -> str:
    """Return stdout and stderr of a result of ``pip.install`` in one text."""
    return f"{result['stdout']} {result['stderr']}"


def plan(request: WantedPipPackages, packages: Sequence[PipPackage]) -> Plan:
    """Return the plan of ``pip.installed`` for packages that are missing or do not meet their conditions."""
    try:
        installed = request.listed()
        comments = {each.text: _present_comment(request, each, installed) for each in packages}
    except CommandError as error:
        return Plan.failed(str(error))
    already = [comment for comment in comments.values() if comment]
    wanted = [each for each in packages if not comments[each.text]]
    if not wanted:
        last = "All specified packages are already installed"
        last += " and up-to-date" if request.given["upgrade"] else ""
        return Plan.unchanged("\n".join([*already, last]))
    would = f"Python package {wanted[0].text} is set to be installed"
    if len(packages) > 1:
        would = "\n".join(["Python package(s) set to be installed:", *(each.text for each in wanted)])

    def work() -> Outcome:
        result = request.install(wanted)
        if result["retcode"]:
            names = ", ".join(each.text.replace(",", ";") for each in wanted)
            comment = f"Failed to install packages: {names}. Error: {output(result)}"
            return Outcome("\n".join([*already, comment]), ok=False)
        after = request.listed()
        missing = [each for each in wanted if each.name and each.name not in after]
        stdout = str(result["stdout"])
        changes = {
            f"{each.name}=={after[each.name]}" if each.name else f"{each.text}==???": "Installed"
            for each in wanted
            if not each.name or (each.name in after and _is_new(each.name, installed, after, stdout))
        }
        lines = [
            f"There was no error installing package '{each.text}' although it does not show when calling 'pip.freeze'."
            for each in missing
            if not request.given["download"] and not request.given["no_install"]
        ]
        return Outcome("\n".join([*already, *(lines or ["All packages were successfully installed"])]), changes)

    return Plan.change(would, [Step(f"install {', '.join(each.text for each in wanted)}", work)])


def _present_comment(request: WantedPipPackages, package: PipPackage, installed: Mapping[str, str]) -> str:
    """Return the comment of a Python package that needs no installation; "" if it is to be installed."""
    given, version = request.given, installed.get(package.name)
    if version is None or given["ignore_installed"] or given["force_reinstall"]:
        return ""
    done = f"Python package {package.text} was already installed"
    if not given["upgrade"]:
        # pip accepts an installed pre-release.
        return done if python_versions.fulfils(version, package.conditions, pre=True) else ""
    kinds = {python_versions.pre_release(each.version.removesuffix(".*")) for each in package.conditions}
    pre = bool(given["pre_releases"])
    places = ("bin_env", "user", "cwd", "index_url", "extra_index_url", "find_links", "no_index")
    versions = request.ctx.call(
        "pip.list_all_versions",
        package.name,
        include_alpha=pre or "a" in kinds,
        include_beta=pre or "b" in kinds,
        include_rc=pre or "rc" in kinds,
        **{key: given[key] for key in places},
    )
    best = [each for each in versions or () if python_versions.fulfils(each, package.conditions, pre=pre)]
    if not best:
        return (
            f"Python package {package.name} was already installed and\nthe available upgrade doesn't fulfills the version "
            "requirements"
        )
    return done if python_versions.compare(version, best[-1]) == 0 else ""


def _is_new(name: str, before: Mapping[str, str], after: Mapping[str, str], stdout: str) -> bool:
    """Return True if pip installed the Python package: its version changed, or pip's output names it as installed."""
    if before.get(name) != after[name]:
        return True
    lines = (line for line in lines_of(stdout) if line.startswith("Successfully installed "))
    words = {canonicalize_name(word) for line in lines for word in line.split()[2:]}
    return canonicalize_name(f"{name}-{after[name]}") in words
