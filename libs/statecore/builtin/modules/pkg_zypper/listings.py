"""Functions of ``pkg`` for patches, patterns, products and services on a host with zypper, and the parsing of zypper's texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree

from statecore.builtin.modules.pkg_rpm import rpm
from statecore.builtin.modules.pkg_zypper import zypper
from statecore.model.context import Context
from statecore.model.errors import InvocationError
from statecore.model.text_lines import lines_of

#: Directory of files with the release of products that an OEM sells.
_OEM = "/var/lib/suseRegister/OEM"

_PATTERN = "pattern() = "


def list_patches(
    ctx: Context, refresh: bool = False, root: str | None = None, **kwargs: Any
) -> dict[str, dict[str, object]]:
    """Return a map of patch to {"installed": bool, "summary": text} for the patches of the repositories.

    refresh
        True: fetch the metadata of the repositories before

    CLI Example:

        salt '*' pkg.list_patches
    """
    if refresh:
        _refresh(ctx, root, kwargs)
    return _listed(ctx, "patch", root)


def list_installed_patches(ctx: Context, root: str | None = None, **kwargs: object) -> dict[str, dict[str, object]]:
    """Return a map of patch to {"installed": True, "summary": text} for the installed patches.

    CLI Example:

        salt '*' pkg.list_installed_patches
    """
    return _installed(_listed(ctx, "patch", root))


def list_patterns(ctx: Context, refresh: bool = False, root: str | None = None) -> dict[str, dict[str, object]]:
    """Return a map of pattern to {"installed": bool, "summary": text} for the patterns of the repositories.

    refresh
        True: fetch the metadata of the repositories before

    CLI Example:

        salt '*' pkg.list_patterns
    """
    if refresh:
        _refresh(ctx, root, {})
    return _listed(ctx, "pattern", root)


def list_installed_patterns(ctx: Context, root: str | None = None) -> dict[str, dict[str, object]]:
    """Return a map of pattern to {"installed": True, "summary": text} for the installed patterns. Patterns that zypper hides
    have the summary "Non-visible pattern".

    CLI Example:

        salt '*' pkg.list_installed_patterns
    """
    where = ["--root", root] if root else []
    told = lines_of(rpm.run(ctx.host, ["rpm", *where, "-q", "--provides", "--whatprovides", "pattern()"]).stdout)
    names = [line.removeprefix(_PATTERN).strip() for line in told if line.startswith(_PATTERN)]
    found = _installed(_listed(ctx, "pattern", root))
    for name in names:
        # A name with a dot is another name of a pattern of an old release.
        if not name.startswith("."):
            found.setdefault(name, {"installed": True, "summary": "Non-visible pattern"})
    return found


def list_products(
    ctx: Context, all: bool = False, refresh: bool = False, root: str | None = None
) -> list[dict[str, object]]:
    """Return the installed products, or with ``all`` all products of the repositories: a list of maps with name, version,
    release, arch, vendor, isbase, installed, eol (end of life), eol_t, description and others.

    refresh
        True: fetch the metadata of the repositories before

    CLI Example:

        salt '*' pkg.list_products all=True
    """
    if refresh:
        _refresh(ctx, root, {})
    arguments = ["products"] if all else ["--disable-repositories", "products", "-i"]
    found = []
    for each in zypper.query_xml(ctx, *arguments, root=root).iter("product"):
        facts: dict[str, object] = {}
        for key, value in each.attrib.items():
            if key in ("isbase", "installed"):
                facts[key] = value in ("true", "1")
            elif value:
                facts[key] = value
        life = each.find("endoflife")
        if life is not None:
            facts |= {"eol": life.get("text", ""), "eol_t": int(life.get("time_t") or 0)}
        text = each.findtext("description") or ""
        facts["description"] = " ".join(line.strip() for line in text.split("\n"))
        if facts.get("productline") and (release := _oem_release(ctx, str(facts["productline"]), root)):
            facts["release"] = release
        found.append(facts)
    return found


def services_need_restart(ctx: Context, root: str | None = None, **kwargs: object) -> list[str]:
    """Return the services that use files which the package manager has replaced since they were started.

    CLI Example:

        salt '*' pkg.services_need_restart
    """
    return zypper.query(ctx, "ps", "-sss", root=root).stdout.split()


def further(ctx: Context, kind: str, root: str | None) -> dict[str, list[dict[str, Any]]]:
    """Return what ``pkg.list_pkgs`` shows of installed products, patterns or patches: a map of "kind:name" to a list with one
    map of attributes. Raise InvocationError for another kind.
    """
    if kind == "package":
        return {}
    if kind == "product":
        products = list_products(ctx, root=root)
        return {
            f"product:{each['name']}": [_attributes(each.get, ("epoch", "version", "release", "arch"))]
            for each in products
        }
    if kind not in ("pattern", "patch"):
        raise InvocationError(f"includes: {kind} is none of package, product, pattern, patch")
    names = list_installed_patterns(ctx, root) if kind == "pattern" else list_installed_patches(ctx, root)
    shown: dict[str, list[dict[str, Any]]] = {}
    for name in names:
        told = zypper.query(ctx, "info", "-t", "package", f"{kind}:{name}", root=root).stdout
        facts = parse_info(told).get(name, {})
        shown[f"{kind}:{name}"] = [_attributes(facts.get, ("version", "arch"))]
    return shown


def parse_info(text: str) -> dict[str, dict[str, object]]:
    """Parse the output of ``zypper info``: a map of package to a map of attributes, whose names are in lower case.
    ``installed`` becomes a boolean.
    """
    found: dict[str, dict[str, object]] = {}
    for block in text.split("Information for ")[1:]:
        facts: dict[str, object] = {}
        for line in lines_of(block)[1:]:
            key, colon, value = line.partition(":")
            if colon and value.strip() and not line.startswith("-----"):
                facts[key.strip().lower()] = value.strip()
        name = facts.pop("name", None)
        if "installed" in facts:
            facts["installed"] = str(facts["installed"]).lower().startswith("yes")
        if name is not None:
            found[str(name)] = facts
    return found


def _listed(ctx: Context, kind: str, root: str | None) -> dict[str, dict[str, object]]:
    found: Iterable[ElementTree.Element] = zypper.query_xml(ctx, "se", "-t", kind, root=root).iter("solvable")
    return {
        each.get("name", ""): {"installed": each.get("status") == "installed", "summary": each.get("summary", "")}
        for each in found
    }


def _installed(listed: dict[str, dict[str, object]]) -> dict[str, dict[str, object]]:
    return {name: facts for name, facts in listed.items() if facts["installed"]}


def _attributes(get: Any, known: tuple[str, ...]) -> dict[str, Any]:
    every = ("epoch", "version", "release", "arch", "install_date", "install_date_time_t")
    return {key: get(key) if key in known else None for key in every}


def _oem_release(ctx: Context, line: str, root: str | None) -> str:
    """Return the release of a product line that an OEM sells; "" if there is no such file."""
    try:
        text = ctx.host.path(f"{(root or '').rstrip('/')}{_OEM}/{line}").read_text("utf-8", "replace")
    except OSError:
        return ""
    return text.partition("\n")[0].strip()


def _refresh(ctx: Context, root: str | None, given: dict[str, Any]) -> None:
    zypper.refresh(ctx, force=given.get("force"), root=root, trust_keys=bool(given.get("gpgautoimport")))
