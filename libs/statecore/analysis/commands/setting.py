"""What a command is told about the minion (trees, grains, pillar, host root), and the runtime made of it."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from statecore.analysis.commands.ending import CommandFault
from statecore.model.option_types import OPTIONS, type_errors
from statecore.model.ports import Jobs
from statecore.render import yaml
from statecore.runtime.runtime import Runtime, local_runtime

_DEFAULT_ROOT = "/srv/salt"


@dataclass(frozen=True, slots=True)
class Setting:
    """The minion that a command speaks of. Paths are absolute: a plan file remembers them."""

    #: Environment -> directories.
    file_roots: Mapping[str, Sequence[str]]
    #: Directory of a pillar tree, file of pillar data, "" for no pillar.
    pillar: str = ""
    #: File of grains; "" for those of this host.
    grains: str = ""
    saltenv: str = ""
    id: str = ""
    #: Where the managed host's ``/`` is.
    root: str = "/"
    #: File of a minion's options, "" for none. Its roots count where no others are named.
    config: str = ""

    def as_data(self) -> dict[str, Any]:
        """For a plan file."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Setting:
        """Out of a plan file. Raises TypeError for what is none."""
        roots = data.get("file_roots")
        texts = [value for name, value in data.items() if name != "file_roots"]
        if not isinstance(roots, dict) or set(data) - {field.name for field in fields(cls)}:
            raise TypeError("not the setting of a run")
        listed = [path for paths in roots.values() for path in (paths if isinstance(paths, list) else [None])]
        if not all(isinstance(text, str) for text in (*roots, *listed, *texts)):
            raise TypeError("not the setting of a run")
        return cls(**data)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that say which minion is meant, and where its trees are."""
    parser.add_argument(
        "--file-root",
        action="append",
        default=[],
        metavar="[ENV=]DIR",
        help=f"directory of the state tree, again for more (default: that of --config, else {_DEFAULT_ROOT})",
    )
    parser.add_argument(
        "--config", default="", metavar="FILE", help="a minion's options: nodegroups, jinja_*, renderer, ..."
    )
    parser.add_argument("--pillar", default="", metavar="DIR|FILE", help="a pillar tree, or a file of pillar data")
    parser.add_argument("--saltenv", default="", help="environment of the run (default: base)")
    parser.add_argument("--id", default="", help="id of the minion (default: that of the grains, else the host's name)")
    parser.add_argument("--root", default="/", metavar="DIR", help="where the host's / is mounted (default: /)")


def setting_of(given: argparse.Namespace, *, tree: str = "", grains: str = "") -> Setting:
    """What the options say. ``tree``: a state tree named by itself. Raises CommandFault."""
    env = given.saltenv or "base"
    roots: dict[str, list[str]] = {}
    config = given.config and _existing(given.config, "config")
    own = bool(config and _options_in(config).get("file_roots"))
    for text in [*([tree] if tree else []), *given.file_root] or ([] if own else [_DEFAULT_ROOT]):
        named, equals, directory = text.partition("=")
        if not equals or "/" in named:
            named, directory = env, text
        roots.setdefault(named, []).append(_directory(directory, "state tree"))
    pillar = given.pillar and _existing(given.pillar, "pillar")
    root = _directory(given.root, "host root")
    return Setting(roots, pillar, grains and _existing(grains, "grains"), given.saltenv, given.id, root, config)


@contextmanager
def runtime_of(setting: Setting, *, keep: str = "", jobs: Jobs | None = None) -> Iterator[Runtime]:
    """The runtime of a minion in this process. Users' modules live in a directory that goes with it; ``keep`` is the directory
    for what is to stay (backups of replaced files), ``jobs`` are those of its host. Raises CommandFault."""
    grains = mapping_in(setting.grains, "grains") if setting.grains else None
    as_file = setting.pillar and not Path(setting.pillar).is_dir()
    pillar = mapping_in(setting.pillar, "pillar") if as_file else None
    config = _options_in(setting.config) if setting.config else {}
    name = setting.id or str((grains or {}).get("id") or config.get("id") or os.uname().nodename)
    with tempfile.TemporaryDirectory(prefix="statecore-") as scratch:
        opts: dict[str, Any] = {
            "pillar_roots": {"base": []},
            **config,
            **(
                {"file_roots": {env: list(roots) for env, roots in setting.file_roots.items()}}
                if setting.file_roots
                else {}
            ),
            **({"pillar_roots": {"base": [setting.pillar]}} if setting.pillar and not as_file else {}),
            "id": name,
            "host_root": setting.root,
            "extension_modules": f"{scratch}/extmods",
            "cachedir": keep or f"{scratch}/cache",
            # Whoever runs this reads the pillar's files: nothing in them is to be kept from him.
            "pillar_safe_render_error": False,
            **({"saltenv": setting.saltenv} if setting.saltenv else {}),
        }
        yield local_runtime(opts, grains=None if grains is None else {**grains, "id": name}, pillar=pillar, jobs=jobs)


def cachedir_of(setting: Setting) -> str:
    """The ``cachedir`` that the minion's options name; "" for none. Raises CommandFault."""
    return str(_options_in(setting.config).get("cachedir") or "") if setting.config else ""


def _options_in(file: str) -> dict[str, Any]:
    options = mapping_in(file, "config")
    if faults := type_errors(options):
        raise CommandFault(f"config: {file}: {'; '.join(faults)}")
    return {name: value for name, value in options.items() if value is not None or name not in OPTIONS}


def mapping_in(file: str, what: str) -> dict[str, Any]:
    """The map in a YAML or JSON file. Raises CommandFault that names the line."""
    try:
        data = yaml.load(Path(file).read_text("utf-8"))
    except yaml.YamlFault as fault:
        raise CommandFault(f"{what}: {file}:{fault.line}: {fault}") from fault
    except UnicodeDecodeError as error:
        raise CommandFault(f"{what}: {file} is no UTF-8 text") from error
    except OSError as error:
        raise CommandFault(f"{what}: {file} cannot be read: {error.strerror}") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise CommandFault(f"{what}: {file} holds no map of names to values")
    # salt-call --out json writes them below the minion's name.
    only = next(iter(data.values()), None) if len(data) == 1 and "local" in data else None
    return only if isinstance(only, dict) else data


def _existing(path: str, what: str) -> str:
    if not Path(path).exists():
        raise CommandFault(f"{what}: there is no {path}")
    return str(Path(path).absolute())


def _directory(path: str, what: str) -> str:
    found = Path(path)
    if not found.is_dir():
        why = f"{path} is no directory" if found.exists() else f"there is no {path}"
        raise CommandFault(f"{what}: {why}")
    return str(found.absolute())
