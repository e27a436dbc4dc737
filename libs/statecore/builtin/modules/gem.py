"""Ruby gems through the host's ``gem``: Salt's ``gem`` execution module, which Salt 3008 no longer has.

In all functions ``runas`` is the user who runs gem, ``gem_bin`` the path of the program (default ``gem``), and ``ruby`` the
Ruby of rvm or rbenv, if users' modules of these names are there and ``gem_bin`` is not given. Functions raise CommandError
with the program's error output.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of

log = logging.getLogger(__name__)

ALIASES = {"list": "list_"}

#: Matches ``rake (13.0.6, 12.3.3)``, and ``rake (12.3.3 < 13.0.6)``.
_GEM = re.compile(r"([^ ]+) \((.+)\)")
_OUTDATED = re.compile(r"(\S+) \(\S+ < (\S+)\)")

#: First major version of RubyGems with the options --no-document and --prerelease.
_ONE_DOCUMENT = 3


def install(
    ctx: Context,
    gems: str | list[str],
    ruby: str | None = None,
    gem_bin: str | None = None,
    runas: str | None = None,
    version: str | None = None,
    rdoc: bool = False,
    ri: bool = False,
    pre_releases: bool = False,
    proxy: str | None = None,
    source: str | None = None,
) -> str:
    """Install Ruby gems, and return gem's output as text. Raise CommandError with gem's error output.

    gems
        names, as a list or separated by spaces
    version
        a version, or a requirement such as ``~> 1.2``
    rdoc, ri
        True: install this documentation too
    pre_releases
        True: versions before a release may be installed
    proxy
        URL of an HTTP proxy
    source
        URL of the server that has the gems

    CLI Example:

        salt '*' gem.install vagrant
    """
    options = ["--version", str(version)] if version else []
    if _major(ctx, ruby, runas, gem_bin) >= _ONE_DOCUMENT:
        options += [] if rdoc and ri else ["--no-document"]
        options += ["--prerelease"] if pre_releases else []
    else:
        options += ([] if rdoc else ["--no-rdoc"]) + ([] if ri else ["--no-ri"]) + (["--pre"] if pre_releases else [])
    options += ["-p", proxy] if proxy else []
    options += ["--source", source] if source else []
    return _gem(ctx, ["install", *_names(gems), *options], ruby, runas, gem_bin)


def uninstall(
    ctx: Context,
    gems: str | list[str],
    ruby: str | None = None,
    runas: str | None = None,
    gem_bin: str | None = None,
) -> str:
    """Remove all versions of Ruby gems and the gems' programs, and return gem's output as text. ``gems``: names, as
    a list or separated by spaces.

    CLI Example:

        salt '*' gem.uninstall vagrant
    """
    return _gem(ctx, ["uninstall", *_names(gems), "-a", "-x"], ruby, runas, gem_bin)


def update(
    ctx: Context,
    gems: str | list[str],
    ruby: str | None = None,
    runas: str | None = None,
    gem_bin: str | None = None,
) -> str:
    """Update Ruby gems to their newest version, and return gem's output as text. ``gems``: names, as a list or
    separated by spaces.

    CLI Example:

        salt '*' gem.update vagrant
    """
    return _gem(ctx, ["update", *_names(gems)], ruby, runas, gem_bin)


def update_system(
    ctx: Context, version: str = "", ruby: str | None = None, runas: str | None = None, gem_bin: str | None = None
) -> str:
    """Update RubyGems itself to a version (default: the newest), and return gem's output as text. Raise CommandError
    with gem's error output.

    CLI Example:

        salt '*' gem.update_system
    """
    return _gem(ctx, ["update", "--system", version], ruby, runas, gem_bin)


def version(
    ctx: Context, ruby: str | None = None, runas: str | None = None, gem_bin: str | None = None
) -> str | dict[str, str]:
    """Return the version of RubyGems as text; {} if gem shows none.

    CLI Example:

        salt '*' gem.version
    """
    lines = lines_of(_gem(ctx, ["--version"], ruby, runas, gem_bin))
    return next((line for line in lines if re.match(r"[.0-9]+", line)), {})


def list_(
    ctx: Context, prefix: str = "", ruby: str | None = None, runas: str | None = None, gem_bin: str | None = None
) -> dict[str, list[str]]:
    """Return a map of each installed Ruby gem to the list of its versions. ``prefix``: only gems whose name matches
    this regular expression.

    CLI Example:

        salt '*' gem.list
    """
    output = _gem(ctx, ["list", *([prefix] if prefix else [])], ruby, runas, gem_bin)
    rows = (match for line in lines_of(output) if (match := _GEM.match(line)))
    return {match.group(1): match.group(2).split(", ") for match in rows}


def list_upgrades(
    ctx: Context, ruby: str | None = None, runas: str | None = None, gem_bin: str | None = None
) -> dict[str, str]:
    """Return a map of each installed Ruby gem that has a newer version to that version.

    CLI Example:

        salt '*' gem.list_upgrades
    """
    found: dict[str, str] = {}
    for line in lines_of(_gem(ctx, ["outdated"], ruby, runas, gem_bin)):
        match = _OUTDATED.search(line)
        if match is None:
            log.error("gem outdated: a line is not understood: %s", line)
        else:
            found[match.group(1)] = match.group(2)
    return found


def sources_add(
    ctx: Context, source_uri: str, ruby: str | None = None, runas: str | None = None, gem_bin: str | None = None
) -> str:
    """Add the URL of a server to the servers from which gems are installed, and return gem's output as text.

    CLI Example:

        salt '*' gem.sources_add http://rubygems.org/
    """
    return _gem(ctx, ["sources", "--add", source_uri], ruby, runas, gem_bin)


def sources_remove(
    ctx: Context, source_uri: str, ruby: str | None = None, runas: str | None = None, gem_bin: str | None = None
) -> str:
    """Remove the URL of a server from the servers from which gems are installed, and return gem's output as text.

    CLI Example:

        salt '*' gem.sources_remove http://rubygems.org/
    """
    return _gem(ctx, ["sources", "--remove", source_uri], ruby, runas, gem_bin)


def sources_list(
    ctx: Context, ruby: str | None = None, runas: str | None = None, gem_bin: str | None = None
) -> list[str]:
    """Return the URLs of the servers from which gems are installed.

    CLI Example:

        salt '*' gem.sources_list
    """
    # The first two lines are a heading and an empty line.
    return lines_of(_gem(ctx, ["sources"], ruby, runas, gem_bin))[2:]


def _names(gems: str | list[str]) -> list[str]:
    return gems.split() if isinstance(gems, str) else list(gems)


def _major(ctx: Context, ruby: str | None, runas: str | None, gem_bin: str | None) -> int:
    found = version(ctx, ruby, runas, gem_bin)
    first = found.partition(".")[0] if isinstance(found, str) else ""
    return int(first) if first.isdecimal() else 0


def _gem(ctx: Context, words: Sequence[str], ruby: str | None, runas: str | None, gem_bin: str | None) -> str:
    """Run the program gem (through rvm or rbenv if users' modules of these names serve it), and return its output.
    Raise CommandError with its error output if it fails.
    """
    command = [gem_bin or "gem", *words]
    if gem_bin is None:
        if "rvm.is_installed" in ctx.functions and ctx.call("rvm.is_installed", runas=runas):
            return str(ctx.call("rvm.do", ruby, command, runas=runas))
        if "rbenv.is_installed" in ctx.functions and ctx.call("rbenv.is_installed", runas=runas):
            if ruby is None:
                return str(ctx.call("rbenv.do", command, runas=runas))
            return str(ctx.call("rbenv.do_with_ruby", ruby, command, runas=runas))
    done = ctx.call("cmd.run_all", command, runas=runas, python_shell=False)
    if done["retcode"]:
        raise CommandError(str(done["stderr"]))
    return str(done["stdout"])
