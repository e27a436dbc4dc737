"""Salt's ``gem`` states: Ruby gems, and the servers that have them. Salt 3008 no longer has these states.

In all states ``user`` runs gem, and ``ruby`` is the Ruby of rvm or rbenv, if users' modules of these names are there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Outcome, Plan, Step
from statecore.system.packages.python_versions import compare

#: Matches a requirement such as ``>= 1.2``.
_REQUIREMENT = re.compile(r"(>=|>|<=|<)\s*(.+)")

#: Comparison -> the results of ``compare`` (installed, wanted) that fulfil it.
_FULFILLED: Mapping[str, tuple[int, ...]] = {">=": (0, 1), ">": (1,), "<=": (-1, 0), "<": (-1,)}


def installed(
    ctx: Context,
    name: str,
    ruby: str | None = None,
    gem_bin: str | None = None,
    user: str | None = None,
    version: str | None = None,
    rdoc: bool = False,
    ri: bool = False,
    pre_releases: bool = False,
    proxy: str | None = None,
    source: str | None = None,
) -> Plan:
    """Install the Ruby gem ``name``. Nothing happens if an installed version fits; the state fails if gem fails.

    gem_bin
        path of the program gem
    version
        a version, or a requirement such as ``>= 1.2``; default: any version
    rdoc, ri
        True: install this documentation too
    pre_releases
        True: versions before a release may be installed
    proxy
        URL of an HTTP proxy
    source
        URL of the server that has the gem
    """
    gems = ctx.call("gem.list", name, ruby, gem_bin=gem_bin, runas=user)
    if name in gems:
        if version is None:
            return Plan.unchanged("Gem is already installed.")
        if _REQUIREMENT.match(str(version)):
            if _fulfils(gems[name], str(version)):
                return Plan.unchanged("Installed Gem meets version requirements.")
        elif str(version) in _versions(gems[name]):
            return Plan.unchanged("Gem is already installed.")
    places = {"ruby": ruby, "gem_bin": gem_bin, "runas": user}
    options = {"rdoc": rdoc, "ri": ri, "pre_releases": pre_releases, "proxy": proxy, "source": source}

    def work() -> Outcome:
        if not ctx.call("gem.install", name, version=version, **places, **options):
            return Outcome("Could not install gem.", ok=False)
        return Outcome("Gem was successfully installed", {name: "Installed"})

    return Plan.change(f"The gem {name} would have been installed", [Step(f"install the gem {name}", work)])


def removed(
    ctx: Context, name: str, ruby: str | None = None, user: str | None = None, gem_bin: str | None = None
) -> Plan:
    """Remove all versions of the Ruby gem ``name``. Nothing happens if it is not installed; the state fails if gem
    fails.

    gem_bin
        path of the program gem
    """
    if name not in ctx.call("gem.list", name, ruby, gem_bin=gem_bin, runas=user):
        return Plan.unchanged("Gem is not installed.")

    def work() -> Outcome:
        if not ctx.call("gem.uninstall", name, ruby, gem_bin=gem_bin, runas=user):
            return Outcome("Could not remove gem.", ok=False)
        return Outcome("Gem was successfully removed.", {name: "Removed"})

    return Plan.change(f"The gem {name} would have been removed", [Step(f"remove the gem {name}", work)])


def sources_add(ctx: Context, name: str, ruby: str | None = None, user: str | None = None) -> Plan:
    """Add the server with the URL ``name`` to gem's sources. Nothing happens if it is one already; the state fails if
    gem fails.
    """
    if name in ctx.call("gem.sources_list", ruby, runas=user):
        return Plan.unchanged("Gem source is already added.")

    def work() -> Outcome:
        if not ctx.call("gem.sources_add", source_uri=name, ruby=ruby, runas=user):
            return Outcome("Could not add gem source.", ok=False)
        return Outcome("Gem source was successfully added.", {name: "Installed"})

    return Plan.change(f"The gem source {name} would have been added.", [Step(f"add the gem source {name}", work)])


def sources_remove(ctx: Context, name: str, ruby: str | None = None, user: str | None = None) -> Plan:
    """Remove the server with the URL ``name`` from gem's sources. Nothing happens if it is none of them; the state
    fails if gem fails.
    """
    if name not in ctx.call("gem.sources_list", ruby, runas=user):
        return Plan.unchanged("Gem source is already removed.")

    def work() -> Outcome:
        if not ctx.call("gem.sources_remove", source_uri=name, ruby=ruby, runas=user):
            return Outcome("Could not remove gem source.", ok=False)
        return Outcome("Gem source was successfully removed.", {name: "Removed"})

    return Plan.change("The gem source would have been removed.", [Step(f"remove the gem source {name}", work)])


def _versions(shown: Sequence[str]) -> list[str]:
    """Return the versions in a row of ``gem list``, without the word for gems that come with Ruby."""
    return [each.removeprefix("default: ").strip() for each in shown]


def _fulfils(shown: Sequence[str], requirement: str) -> bool:
    """Return whether the newest installed version fulfils a requirement such as ``>= 1.2``. Raise CommandError if a
    version cannot be compared.
    """
    match = _REQUIREMENT.match(requirement)
    if match is None:
        raise CommandError(f"'{requirement}' is no requirement of a version")
    return compare(_versions(shown)[0], match.group(2).strip()) in _FULFILLED[match.group(1)]
