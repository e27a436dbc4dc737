"""Functions of ``pip`` that list installed packages and available versions."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Sequence
from typing import Any

from packaging.utils import canonicalize_name

from statecore.builtin.modules.pip import cli_options, program
from statecore.builtin.modules.pip import requirements as requirements_files
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of
from statecore.system.packages import python_versions

log = logging.getLogger(__name__)

#: First versions of pip with JSON lists, and with the command ``index``.
_JSON, _INDEX = "9.0", "21.2"

_QUIET = "--disable-pip-version-check"


def version(ctx: Context, bin_env: str | None = None, cwd: str | None = None, user: str | None = None) -> str:
    """Return pip's version as text. Raise CommandError if there is no pip.

    CLI Example:

        salt '*' pip.version bin_env=/opt/venv
    """
    return program.version(ctx, bin_env, cwd, user)


def freeze(
    ctx: Context,
    bin_env: str | None = None,
    user: str | None = None,
    cwd: str | None = None,
    use_vt: bool = False,
    env_vars: dict[str, object] | None = None,
) -> list[str]:
    """Return the installed Python packages as lines of a requirements file (``name==version``). Raise CommandError if
    pip fails.

    CLI Example:

        salt '*' pip.freeze bin_env=/opt/venv
    """
    first = program.argv(ctx, bin_env)
    result = program.run(ctx, [*first, "freeze", "--all", _QUIET], bin_env, user, cwd, env_vars, use_vt=use_vt)
    if result["retcode"]:
        raise CommandError(result["stderr"] or result["stdout"], result)
    return lines_of(str(result["stdout"]))


def list_(
    ctx: Context,
    prefix: str | None = None,
    bin_env: str | None = None,
    user: str | None = None,
    cwd: str | None = None,
    env_vars: dict[str, object] | None = None,
    target: str | None = None,
) -> dict[str, str]:
    """Return a map of the normalized name of each installed Python package that begins with ``prefix`` to its
    version.

    ``target``: list the packages of this directory instead.

    CLI Example:

        salt '*' pip.list salt
    """
    if python_versions.compare(program.version(ctx, bin_env, cwd, user), _JSON) < 0:
        return list_freeze_parse(ctx, prefix, bin_env, user, cwd, env_vars)
    more = ["--path", target] if target else []
    rows = _rows(ctx, [*more], bin_env, user, cwd, env_vars)
    start = canonicalize_name(prefix) if prefix else ""
    named = {canonicalize_name(row["name"]): str(row["version"]) for row in rows}
    return {name: version for name, version in named.items() if name.startswith(start)}


def list_freeze_parse(
    ctx: Context,
    prefix: str | None = None,
    bin_env: str | None = None,
    user: str | None = None,
    cwd: str | None = None,
    env_vars: dict[str, object] | None = None,
) -> dict[str, str]:
    """Return a map of installed Python package to version as ``pip.list`` does, read from ``pip freeze``. The value of
    an editable package is its location, not its version.

    CLI Example:

        salt '*' pip.list_freeze_parse salt
    """
    start = canonicalize_name(prefix) if prefix else ""
    found = {"pip": program.version(ctx, bin_env, cwd, user)} if "pip".startswith(start) else {}
    for line in freeze(ctx, bin_env, user, cwd, env_vars=env_vars):
        if line.startswith(("-f", "#", "-e hg+not trust")):
            continue
        text = line.removeprefix("-e ")
        if line.startswith("-e ") and "#egg=" in text:
            location, _, name = text.partition("#egg=")
        elif "==" in text:
            name, location = re.split("={2,3}", text, maxsplit=1)
        else:
            log.error("Can't parse line '%s'", line)
            continue
        if canonicalize_name(name).startswith(start):
            found[canonicalize_name(name)] = location
    return found


def list_editable(
    ctx: Context,
    bin_env: str | None = None,
    user: str | None = None,
    cwd: str | None = None,
    env_vars: dict[str, object] | None = None,
) -> dict[str, str]:
    """Return a map of directory to package name for the Python packages that are installed in editable mode (``pip
    install --editable``).

    CLI Example:

        salt '*' pip.list_editable bin_env=/opt/venv
    """
    if python_versions.compare(program.version(ctx, bin_env, cwd, user), _JSON) < 0:
        return {}
    rows = _rows(ctx, ["--editable"], bin_env, user, cwd, env_vars)
    return {
        str(location): canonicalize_name(row["name"])
        for row in rows
        if (location := row.get("editable_project_location"))
    }


def requirements_met(
    ctx: Context,
    requirements: str | Sequence[str],
    bin_env: str | None = None,
    user: str | None = None,
    cwd: str | None = None,
    env_vars: dict[str, object] | None = None,
    saltenv: str | None = None,
) -> bool:
    """Return whether every requirement of requirements files is installed in an allowed version.

    Return also False if only pip could decide: for URLs, paths, options, hashes, environment markers. Dependencies of
    the packages are not checked.

    CLI Example:

        salt '*' pip.requirements_met salt://requirements.txt bin_env=/opt/venv
    """
    asked = [python_versions.requirements_in(text) for text in requirements_texts(ctx, requirements, cwd, saltenv)]
    there = list_(ctx, None, bin_env, user, cwd, env_vars)
    return all(
        rows is not None
        and all(
            each.name in there and python_versions.fulfils(there[each.name], each.conditions, pre=True) for each in rows
        )
        for rows in asked
    )


def requirements_texts(
    ctx: Context, requirements: str | Sequence[str], cwd: str | None = None, saltenv: str | None = None
) -> list[str]:
    """Return the contents of requirements files and of the files that they include, as a list of texts. Raise
    CommandError for a missing file.

    CLI Example:

        salt '*' pip.requirements_texts salt://requirements.txt
    """
    return requirements_files.texts(ctx, requirements, cwd, saltenv or ctx.saltenv)


def list_upgrades(
    ctx: Context, bin_env: str | None = None, user: str | None = None, cwd: str | None = None
) -> dict[str, str]:
    """Return a map of the name of each Python package with a newer version to "VERSION [file type]". Raise CommandError
    if pip fails.

    CLI Example:

        salt '*' pip.list_upgrades bin_env=/opt/venv
    """
    rows = _rows(ctx, ["--outdated"], bin_env, user, cwd, None)
    return {row["name"]: f"{row['latest_version']} [{row['latest_filetype']}]" for row in rows}


def is_installed(
    ctx: Context, pkgname: str, bin_env: str | None = None, user: str | None = None, cwd: str | None = None
) -> bool:
    """Return whether a Python package is installed.

    CLI Example:

        salt '*' pip.is_installed salt
    """
    return canonicalize_name(pkgname) in list_(ctx, pkgname, bin_env, user, cwd)


def upgrade_available(
    ctx: Context, pkg: str, bin_env: str | None = None, user: str | None = None, cwd: str | None = None
) -> bool:
    """Return whether a newer version of an installed Python package is available. Return False if the package is not
    installed.

    CLI Example:

        salt '*' pip.upgrade_available salt
    """
    names = list_upgrades(ctx, bin_env, user, cwd)
    return canonicalize_name(pkg) in {canonicalize_name(name) for name in names}


def list_all_versions(
    ctx: Context,
    pkg: str,
    bin_env: str | None = None,
    include_alpha: bool = False,
    include_beta: bool = False,
    include_rc: bool = False,
    user: str | None = None,
    cwd: str | None = None,
    index_url: str | None = None,
    extra_index_url: object = None,
    find_links: object = None,
    no_index: bool = False,
) -> list[str] | None:
    """Return all available versions of a Python package, oldest first. Return None if there are none.

    Pre-releases are included only with ``include_alpha``, ``include_beta``, ``include_rc``.

    CLI Example:

        salt '*' pip.list_all_versions salt
    """
    indexes = {"index_url": index_url, "extra_index_url": extra_index_url, "no_index": no_index}
    more = [word for link in cli_options.split(find_links) for word in ("--find-links", link)]
    more += [*cli_options.index_options(indexes), *(["--no-index"] if no_index else [])]
    pre = ["--pre"] if include_alpha or include_beta or include_rc else []
    first = program.argv(ctx, bin_env)
    if python_versions.compare(program.version(ctx, bin_env, cwd, user), _INDEX) >= 0:
        asked, pattern = ["index", "versions", pkg], r"\s*Available versions: (.*)"
    else:
        asked, pattern = ["install", f"{pkg}==versions"], r"\s*Could not find a version.* \(from versions: (.*)\)"
    result = program.run(ctx, [*first, _QUIET, *asked, *pre, *more], bin_env, user, cwd, redirect_stderr=True)
    match = re.search(pattern, str(result["stdout"]))
    wanted = {"": True, "dev": bool(pre), "a": include_alpha, "b": include_beta, "rc": include_rc}
    found = [each for each in match[1].split(", ") if each and each != "none"] if match else []
    kept = [each for each in found if wanted[python_versions.pre_release(each)]]
    return sorted(kept, key=python_versions.order) or None


def _rows(
    ctx: Context,
    more: list[str],
    bin_env: str | None,
    user: str | None,
    cwd: str | None,
    env_vars: dict[str, object] | None,
) -> list[dict[str, Any]]:
    """Return the rows of ``pip list --format=json`` as a list of maps. Raise CommandError if pip fails or prints no
    JSON.
    """
    command = [*program.argv(ctx, bin_env), "list", "--format=json", _QUIET, *more]
    result = program.run(ctx, command, bin_env, user, cwd, env_vars)
    if result["retcode"]:
        raise CommandError(result["stderr"], result)
    try:
        rows: list[dict[str, Any]] = json.loads(result["stdout"])
    except ValueError as error:
        raise CommandError(f"pip list gave no JSON: {result['stdout'][:200]!r}", result) from error
    return rows
