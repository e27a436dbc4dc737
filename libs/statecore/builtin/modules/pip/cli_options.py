"""Options of the commands ``pip install`` and ``pip uninstall``, built from the arguments of Salt's functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.system.packages import python_versions

_URL = re.compile(r"(?:https?|ftp|file)://", re.IGNORECASE)

_EGG = re.compile(r"(?:#|#.*?&)egg=([^&]+)")

#: Argument -> pip option without a value.
_FLAGS: Mapping[str, str] = {
    "no_index": "--no-index",
    "disable_version_check": "--disable-pip-version-check",
    "upgrade": "--upgrade",
    "force_reinstall": "--force-reinstall",
    "ignore_installed": "--ignore-installed",
    "no_deps": "--no-deps",
    "no_install": "--no-install",
    "no_download": "--no-download",
    "no_cache_dir": "--no-cache-dir",
    "pre_releases": "--pre",
    "allow_all_external": "--allow-all-external",
    "process_dependency_links": "--process-dependency-links",
}

#: Argument -> option with one value.
_VALUES: Mapping[str, str] = {
    "build": "--build",
    "target": "--target",
    "download": "--download",
    "source": "--source",
    "cert": "--cert",
    "trusted_host": "--trusted-host",
}

#: Argument -> option that is repeated for each value.
_REPEATED: Mapping[str, str] = {
    "global_options": "--global-option",
    "install_options": "--install-option",
    "allow_external": "--allow-external",
    "allow_unverified": "--allow-unverified",
}


def install_words(ctx: Context, given: Mapping[str, object], version: str) -> list[str]:
    """Return the options and packages of a ``pip install`` command as a list of words.

    ``given``: all arguments of ``pip.install`` by name. ``version``: pip's version. Raise InvocationError or
    CommandError for invalid arguments.
    """
    words = [*_wheels(given, version), *common_options(ctx, given)]
    words += [word for link in split(given["find_links"]) for word in ("--find-links", _checked_link(ctx, link))]
    words += index_options(given)
    if given["mirrors"]:
        raise CommandError(
            "pip >= 7.0.0 does not support mirror argument: use index_url and/or extra_index_url instead"
        )
    words += [option for name, option in _FLAGS.items() if given[name]]
    words += [word for name, option in _VALUES.items() if given[name] for word in (option, str(given[name]))]
    if cache := given["download_cache"] or given["cache_dir"]:
        words += ["--cache-dir", str(cache)]
    if action := given["exists_action"]:
        if str(action).lower() not in ("s", "i", "w", "b"):
            raise CommandError(
                f"The exists_action pip option only supports the values s, i, w, and b. '{action}' is not valid."
            )
        words += ["--exists-action", str(action)]
    words += [word for name, option in _REPEATED.items() for each in split(given[name]) for word in (option, each)]
    # pip.installed writes ";" for the commas within one requirement, since "," separates requirements.
    words += [each.replace(";", ",") if _commas(each) else each for each in split(given["pkgs"])]
    words += [word for entry in editables(given["editable"]) for word in ("--editable", entry)]
    return words + extra_words(given["extra_args"])


def common_options(ctx: Context, given: Mapping[str, object]) -> list[str]:
    """Return the options that the commands ``pip install`` and ``pip uninstall`` share: --log, --proxy, --timeout
    (seconds).
    """
    words: list[str] = []
    if given["log"]:
        words += ["--log", _log(ctx, str(given["log"]))]
    if (proxy := _proxy(ctx, given["proxy"])) is not None:
        words += ["--proxy", proxy]
    if (timeout := given["timeout"]) is not None and timeout is not False:
        if isinstance(timeout, float) or not str(timeout).isdecimal():
            raise InvocationError(f"'{timeout}' is not a valid timeout, must be an integer")
        words += ["--timeout", str(timeout)]
    return words


def index_options(given: Mapping[str, object]) -> list[str]:
    """Return pip's options that name package indexes, as a list of words. Raise CommandError for an invalid URL, or for
    an index together with no_index.
    """
    if given["no_index"] and (given["index_url"] or given["extra_index_url"]):
        raise CommandError("'no_index' and ('index_url' or 'extra_index_url') are mutually exclusive.")
    words: list[str] = []
    for name, option in (("index_url", "--index-url"), ("extra_index_url", "--extra-index-url")):
        urls = split(given[name]) if name == "extra_index_url" else [given[name]] if given[name] else []
        for url in urls:
            if not _URL.match(str(url)):
                raise CommandError(f"'{url}' is not a valid URL")
            words += [option, str(url)]
    return words


def editables(value: object) -> list[str]:
    """Return the requirements that pip installs in editable mode. Raise CommandError for a repository URL without
    ``#egg=``.
    """
    entries = split(value)
    for entry in entries:
        if entry != "." and not entry.startswith(("file://", "/")) and not _EGG.search(entry):
            raise CommandError("You must specify an egg for this editable")
    return entries


def split(value: object) -> list[str]:
    """Return a list of texts, from a list or from text with commas. Return [] for None, "" and False."""
    if value in (None, "", False):
        return []
    each = value if isinstance(value, list | tuple) else str(value).split(",")
    return [str(one).strip() for one in each if str(one).strip()]


def extra_words(value: Any) -> list[str]:
    """Return the words of pip's argument ``extra_args``: each text, and option and value of each map. Raise
    InvocationError for nested values.
    """
    words: list[str] = []
    if isinstance(value, str | Mapping):
        value = [value]
    for each in value or ():
        if not isinstance(each, Mapping):
            words.append(str(each))
            continue
        for option, of in each.items():
            if isinstance(of, Mapping | list):
                raise InvocationError(f"extra_args: too many levels in {option}")
            words += [str(option), str(of)]
    return words


def _wheels(given: Mapping[str, Any], version: str) -> list[str]:
    options = {"use_wheel": "--use-wheel", "no_use_wheel": "--no-use-wheel"}
    asked = {name: given[name] for name in (*options, "no_binary")}
    if refused := python_versions.wheel_options_refused(version, **asked):
        raise CommandError(refused)
    words = [option for name, option in options.items() if given[name]]
    return [*words, "--no-binary", ",".join(split(given["no_binary"]))] if given["no_binary"] else words


def _checked_link(ctx: Context, link: str) -> str:
    if not _URL.match(link) and not (link.startswith("/") and ctx.host.path(link).exists()):
        raise CommandError(f"'{link}' is not a valid URL or path")
    return link


def _log(ctx: Context, log: str) -> str:
    real_path = ctx.host.path(log)
    if real_path.is_dir():
        raise CommandError(f"'{log}' is a directory. Use --log path_to_file")
    if not real_path.exists() and not real_path.parent.is_dir():
        raise CommandError(f"Trying to create '{log}' but parent directory '{Path(log).parent}' does not exist.")
    return log


def _proxy(ctx: Context, proxy: object) -> str | None:
    """Return the proxy URL for pip: the argument ``proxy``, else the proxy in the minion's options. Return None if
    there is none, or if ``proxy`` is False.
    """
    if proxy:
        return str(proxy)
    host, port = ctx.opts.get("proxy_host"), ctx.opts.get("proxy_port")
    if proxy is False or not (host and port):
        return None
    user, password = ctx.opts.get("proxy_username"), ctx.opts.get("proxy_password")
    return f"http://{user}:{password}@{host}:{port}" if user and password else f"http://{host}:{port}"


def _commas(requirement: str) -> bool:
    """Return whether ";" in a pip requirement means a comma, and not the start of an environment marker.

    ";" before an environment marker is followed by a name; ";" that means a comma is followed by an operator such as
    ">=".
    """
    _, separator, rest = requirement.partition(";")
    return bool(separator) and re.match(r"\s*[<>=!~]", rest) is not None
