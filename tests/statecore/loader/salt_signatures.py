"""Signatures of Salt's modules, read from their sources: nothing of Salt is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

#: Kind of module -> name that it is served by -> files of Salt, the first counting most. Others have their own name.
FILES: Mapping[str, Mapping[str, Sequence[str]]] = {
    "modules": {
        "pkg": ("aptpkg", "yumpkg"),
        "service": ("systemd_service",),
        "user": ("useradd",),
        "group": ("groupadd",),
        "locale": ("localemod",),
        "sysctl": ("linux_sysctl",),
        "ip": ("debian_ip", "rh_ip"),
        "cmd": ("cmdmod",),
        "virtualenv": ("virtualenv_mod",),
        "shadow": ("linux_shadow",),
        "x509": ("x509_v2",),
        "random": ("mod_random",),
        "log": ("logmod",),
        "sys": ("sysmod",),
        "ini": ("ini_manage",),
        "debconf": ("debconfmod",),
        "lvm": ("linux_lvm",),
        "partition": ("parted_partition",),
        "raid": ("mdadm_raid",),
        "acl": ("linux_acl",),
        "lowpkg": ("dpkg_lowpkg",),
    },
    "states": {"debconf": ("debconfmod",), "raid": ("mdadm_raid",), "acl": ("linux_acl",)}
    | {"virtualenv": ("virtualenv_mod",), "pip": ("pip_state",), "x509": ("x509_v2",), "ini": ("ini_manage",)}
    | {"salt": ("saltmod",)},
}


@dataclass(frozen=True, slots=True)
class Signature:
    """Names of the arguments of a function, and whether it takes any others."""

    names: tuple[str, ...]
    takes_any: bool


def of_module(salt: Path, kind: str, name: str) -> dict[str, Signature]:
    """Function -> signature of the module that Salt serves by this name; {} where it has none."""
    found: dict[str, Signature] = {}
    for file in reversed(FILES[kind].get(name, (name,))):
        place = salt / kind / f"{file}.py"
        if place.is_file():
            found |= dict(_functions(ast.parse(place.read_text())))
    return found


def _functions(tree: ast.Module) -> Iterator[tuple[str, Signature]]:
    aliases: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__func_alias__" for target in node.targets
        ):
            aliases = ast.literal_eval(node.value)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            own = node.args
            names = [each.arg for each in (*own.posonlyargs, *own.args, *own.kwonlyargs)]
            yield aliases.get(node.name, node.name), Signature(tuple(names), own.kwarg is not None)
