"""The settings of the language server: which trees, which minion, and whether the tree's code may run.

They come from the command line and from the editor (``initializationOptions``). The editor's settings may be part of a
foreign tree (``.vscode/settings.json``), so ``trust`` is taken from the command line alone, and without it the paths of the
editor's settings must lie in the editor's folder. The command line alone names paths elsewhere.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from statecore.host import beneath
from statecore.lsp.index import Roots

log = logging.getLogger(__name__)


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
    #: saltenv of the run; "" for base.
    saltenv: str = ""
    #: True: templates may call every execution function, and users' modules and renderers are loaded.
    trust: bool = False
    #: The editor's folder; "" for none.
    folder: str = ""
    #: Those of the paths above that the editor's settings name or that were found in the folder. Not the command line's.
    of_folder: Sequence[str] = ()

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
            str(data["saltenv"]),
            bool(data["trust"]),
        )

    def paths(self) -> list[str]:
        """Return the directories and files that are read: the roots, the pillar and the grains."""
        roots = [each for listed in self.file_roots.values() for each in listed]
        return [*roots, *(each for each in (self.pillar, self.grains) if each)]

    def outside(self) -> list[str]:
        """Return the paths of an untrusted folder that lead out of the folder now, by links that may have changed."""
        return [] if self.trust else [each for each in self.of_folder if not _leads_into(each, self.folder)]

    def roots(self) -> Roots:
        """Return the directories that the index reads: none that leads out of an untrusted folder."""
        outside = self.outside()
        tree = self.pillar and self.pillar not in outside and Path(self.pillar).is_dir()
        states = {env: [each for each in listed if each not in outside] for env, listed in self.file_roots.items()}
        return Roots(states, {"base": [self.pillar]} if tree else {}, follow_links=self.trust)


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
    any state tree, a likely directory below the workspace is taken, else the workspace itself. A path that leads out of the
    workspace is a problem and is left out, unless the settings of the command line trust the workspace.
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
    bound = "" if settings.trust else folder
    if not settings.trust:
        roots, wrong = _inside(roots, folder)
        problems += wrong
    for name in ("pillar", "grains"):
        if name in texts and not settings.trust and not _leads_into(texts[name], folder):
            problems.append(_outside(name, texts.pop(name), folder, f"--{name}"))
        elif name in texts and not _is_kind(texts[name], name):
            what = "which does not exist" if not Path(texts[name]).exists() else "which is no file"
            problems.append(f"the setting '{name}' names {texts.pop(name)}, {what}")
    likely_states = {} if settings.file_roots or roots else _likely_states(folder, bound)
    likely_pillar = "" if settings.pillar or texts.get("pillar") else _likely_pillar(folder, bound)
    found = replace(
        settings,
        file_roots=settings.file_roots or roots or likely_states,
        pillar=settings.pillar or texts.get("pillar", "") or likely_pillar,
        grains=settings.grains or texts.get("grains", ""),
        id=settings.id or texts.get("id", ""),
        folder=folder,
    )
    own = {*settings.paths()}
    return replace(found, of_folder=tuple(each for each in found.paths() if each not in own)), problems


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


def _inside(roots: Mapping[str, Sequence[str]], folder: str) -> tuple[dict[str, list[str]], list[str]]:
    """Return the roots that lie in the folder, and a text about each other one."""
    kept = {env: [each for each in listed if _leads_into(each, folder)] for env, listed in roots.items()}
    others = [each for listed in roots.values() for each in listed if not _leads_into(each, folder)]
    texts = [_outside("fileRoots", each, folder, "--file-root") for each in others]
    return {env: listed for env, listed in kept.items() if listed}, texts


def _outside(name: str, path: str, folder: str, option: str) -> str:
    return (
        f"the setting '{name}' names {path}, which is not in the folder {folder or '(none is open)'}: settings may be part "
        f"of the folder, so only the command line names such a path ({option} {path})"
    )


def _leads_into(path: str, folder: str) -> bool:
    """Return whether a path is the folder or below it, with its links followed. The path may be missing."""
    tops = {os.path.normpath(folder), os.path.realpath(folder)} if folder else set()
    rest = next(
        (path[len(top.rstrip("/")) :].strip("/") for top in tops if f"{path}/".startswith(_with_slash(top))), None
    )
    if rest is None:
        return False
    try:
        with beneath.directory(folder) as top:
            os.close(beneath.open_beneath(top, rest, os.O_PATH, links=beneath.Links.BENEATH, known_as=tuple(tops)))
    except FileNotFoundError:
        return True
    except OSError:
        # Outside, a loop of links, or behind a closed directory.
        return False
    return True


def _with_slash(path: str) -> str:
    return f"{path.rstrip('/')}/"


def _is_kind(path: str, name: str) -> bool:
    """Return whether a path is of a kind that a setting takes: reading a named pipe or a device would never end."""
    return Path(path).is_file() or (name == "pillar" and Path(path).is_dir())


def _path(text: str, folder: str) -> str:
    """Return the absolute path of a setting. A text that no path can be is below the folder, where it does not exist."""
    given = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    try:
        given = str(Path(given).expanduser())
    except RuntimeError:
        log.debug("the setting %r names a home directory that is not known", text)
    return os.path.normpath(os.path.join(folder or "/", given))


def _likely_states(folder: str, bound: str) -> dict[str, list[str]]:
    if not folder:
        return {}
    for name in _LIKELY_STATES:
        path = Path(folder, name)
        if path.is_dir() and _allowed(path, bound) and (any(path.glob("*.sls")) or any(path.glob("*/*.sls"))):
            return {"base": [str(path)]}
    return {"base": [folder.rstrip("/") or "/"]}


def _likely_pillar(folder: str, bound: str) -> str:
    likely = (Path(folder, name) for name in _LIKELY_PILLAR if folder and Path(folder, name, "top.sls").is_file())
    return next((str(path) for path in likely if _allowed(path, bound)), "")


def _allowed(path: Path, bound: str) -> bool:
    return not bound or _leads_into(str(path), bound)
