"""What ``pip.installed`` was asked for, and the packages it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.system.packages import python_versions


@dataclass(frozen=True, slots=True)
class PipPackage:
    """One requirement. ``name`` is "" where it is known only once it is installed."""

    text: str
    name: str
    conditions: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class WantedPipPackages:
    """What ``installed`` was asked for: the arguments of pip.install."""

    ctx: Context
    given: Mapping[str, Any]

    def listed(self, prefix: str | None = None) -> dict[str, str]:
        """name -> version of what is installed, in the target where one is named."""
        names = ("bin_env", "user", "cwd", "env_vars", "target")
        found: dict[str, str] = self.ctx.call("pip.list", prefix, **{key: self.given[key] for key in names})
        return found

    def install(self, packages: Sequence[PipPackage]) -> dict[str, Any]:
        """What pip said. A fault of the arguments is told as pip's would be."""
        pkgs = [each.text for each in packages] or None
        try:
            result: dict[str, Any] = self.ctx.call("pip.install", **{**self.given, "pkgs": pkgs})
        except (CommandError, InvocationError) as error:
            return {"retcode": 1, "stdout": "", "stderr": str(error)}
        return result


def package(each: Any) -> PipPackage:
    text = str(each)
    if isinstance(each, Mapping):
        if len(each) != 1:
            raise ValueError(f"pkgs: {dict(each)} is no requirement: write a name, or one name and its conditions")
        text = " ".join(map(str, next(iter(each.items()))))
    wanted = python_versions.requirement(text)
    return PipPackage(text, wanted.name, wanted.conditions)


def said(result: Mapping[str, Any]) -> str:
    return f"{result['stdout']} {result['stderr']}"
