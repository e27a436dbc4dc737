"""The settings of the language server: which trees, which minion, and whether the tree's code may run.

They come from the command line and from the editor (``initializationOptions``). The editor's settings may be part of a
foreign tree (``.vscode/settings.json``), so ``trust`` is taken from the command line alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from statecore.lsp.index import Roots


@dataclass(frozen=True, slots=True)
class Settings:
    """Trees and minion of one workspace. All paths are absolute."""

    #: saltenv -> directories of the state tree.
    file_roots: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: Directory of a pillar tree, or file of pillar data; "" for none.
    pillar: str = ""
    #: File of grains; "" for the grains of this host.
    grains: str = ""
    #: Minion id; "" for the id in the grains.
    id: str = ""
    #: True: templates may call every execution function, and users' modules and renderers are loaded.
    trust: bool = False

    def as_data(self) -> dict[str, object]:
        """Return the settings as a map for JSON."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, object]) -> Settings:
        """Return the settings that ``as_data`` made a map of."""
        roots = data["file_roots"]
        assert isinstance(roots, Mapping)
        return cls(
            {str(env): [str(each) for each in listed] for env, listed in roots.items()},
            str(data["pillar"]),
            str(data["grains"]),
            str(data["id"]),
            bool(data["trust"]),
        )

    def roots(self) -> Roots:
        """Return the directories that the index reads."""
        tree = Path(self.pillar).is_dir() if self.pillar else False
        return Roots(self.file_roots, {"base": [self.pillar]} if tree else {})


#: Setting of the editor -> what it is.
KNOWN: Mapping[str, str] = {
    "fileRoots": "directories of the state tree: a list, or a map of saltenv to lists",
    "pillar": "directory of a pillar tree, or file of pillar data",
    "grains": "file of grains (YAML or JSON) of the minion",
    "id": "id of the minion",
}

#: Directories below a workspace that are a state tree or a pillar tree if they exist, in this order.
_LIKELY_STATES = ("srv/salt", "salt", "states", "srv")
_LIKELY_PILLAR = ("srv/pillar", "pillar")


def with_editor(settings: Settings, options: object, folder: str) -> tuple[Settings, list[str]]:
    """Return the settings with those of the editor, and texts about settings that cannot be used.

    ``folder`` is the workspace; relative paths are relative to it. The command line's settings take precedence. Without
    any state tree, a likely directory below the workspace is taken, else the workspace itself.
    """
    given = options if isinstance(options, Mapping) else {}
    given = given.get("statecore", given) if isinstance(given.get("statecore", given), Mapping) else {}
    problems = [f"there is no setting '{name}'; there are {', '.join(KNOWN)}" for name in given if name not in KNOWN]
    roots, wrong = _roots(given.get("fileRoots"), folder)
    problems += wrong
    texts: dict[str, str] = {}
    for name in ("pillar", "grains", "id"):
        value = given.get(name)
        if value not in (None, "") and not isinstance(value, str):
            problems.append(f"the setting '{name}' must be a text")
        elif value:
            texts[name] = str(value) if name == "id" else _path(str(value), folder)
    for name in ("pillar", "grains"):
        if name in texts and not Path(texts[name]).exists():
            problems.append(f"the setting '{name}' names {texts.pop(name)}, which does not exist")
    found = replace(
        settings,
        file_roots=settings.file_roots or roots or _likely_states(folder),
        pillar=settings.pillar or texts.get("pillar", "") or _likely_pillar(folder),
        grains=settings.grains or texts.get("grains", ""),
        id=settings.id or texts.get("id", ""),
    )
    return found, problems


def _roots(given: object, folder: str) -> tuple[dict[str, list[str]], list[str]]:
    if given in (None, "", [], {}):
        return {}, []
    if isinstance(given, str):
        given = [given]
    envs = given if isinstance(given, Mapping) else {"base": given}
    roots: dict[str, list[str]] = {}
    for env, listed in envs.items():
        names = [listed] if isinstance(listed, str) else listed
        if not isinstance(names, Sequence) or not all(isinstance(each, str) for each in names):
            return {}, ["the setting 'fileRoots' must be a list of directories, or a map of saltenv to such lists"]
        roots[str(env)] = [_path(each, folder) for each in names]
    missing = [each for listed in roots.values() for each in listed if not Path(each).is_dir()]
    return roots, [f"the setting 'fileRoots' names {each}, which is no directory" for each in missing]


def _path(text: str, folder: str) -> str:
    return os.path.normpath(os.path.join(folder or "/", Path(text).expanduser()))


def _likely_states(folder: str) -> dict[str, list[str]]:
    if not folder:
        return {}
    for name in _LIKELY_STATES:
        path = Path(folder, name)
        if path.is_dir() and (any(path.glob("*.sls")) or any(path.glob("*/*.sls"))):
            return {"base": [str(path)]}
    return {"base": [folder.rstrip("/") or "/"]}


def _likely_pillar(folder: str) -> str:
    return next(
        (str(Path(folder, name)) for name in _LIKELY_PILLAR if folder and Path(folder, name, "top.sls").is_file()), ""
    )
