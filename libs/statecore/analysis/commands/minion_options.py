"""The command-line options that describe the minion (trees, grains, pillar, host root), and the Runtime that is built
from them.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from statecore.analysis.commands.exit_codes import CommandFault
from statecore.model.option_types import OPTIONS
from statecore.model.ports import Jobs
from statecore.runtime.option_files import OptionFileError, checked, read_map
from statecore.runtime.runtime import Runtime, local_runtime

_DEFAULT_ROOT = "/srv/salt"


@dataclass(frozen=True, slots=True)
class MinionOptions:
    """The minion that a ``statecore`` command works for: its trees, grains, pillar, id and host root.

    All paths are absolute, because a plan file (``statecore plan --out-file``) stores them.
    """

    #: saltenv -> directories of its state tree.
    file_roots: Mapping[str, Sequence[str]]
    #: Directory of a pillar tree or file of pillar data; "" for no pillar.
    pillar: str = ""
    #: File of grains; "" for the grains of this host.
    grains: str = ""
    saltenv: str = ""
    id: str = ""
    #: Directory where the managed host's ``/`` is mounted.
    root: str = "/"
    #: A minion's configuration file, "" for none. Its file_roots are used if no other state tree is given.
    config: str = ""

    def as_data(self) -> dict[str, object]:
        """Return a map of all fields (trees, grains, pillar, id, host root), for a plan file."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: object) -> MinionOptions:
        """Return the description of the minion that a plan file holds. Raise TypeError if ``data`` was not made by
        ``as_data``.
        """
        roots = data.get("file_roots") if isinstance(data, dict) else None
        if not isinstance(data, dict) or not isinstance(roots, dict) or set(data) - {one.name for one in fields(cls)}:
            raise TypeError("not the options of a minion")
        texts = {name: value for name, value in data.items() if name != "file_roots"}
        listed = [path for paths in roots.values() for path in (paths if isinstance(paths, list) else [None])]
        if not all(isinstance(text, str) for text in (*roots, *listed, *texts.values())):
            raise TypeError("not the options of a minion")
        return cls(roots, **texts)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command-line options that describe the minion and its trees to a parser."""
    parser.add_argument(
        "--file-root",
        action="append",
        default=[],
        metavar="[ENV=]DIR",
        help=f"directory of the state tree; repeatable (default: file_roots of --config, else {_DEFAULT_ROOT})",
    )
    parser.add_argument(
        "--config",
        default="",
        metavar="FILE",
        help="a minion's configuration file (nodegroups, jinja_*, renderer, ...)",
    )
    parser.add_argument(
        "--pillar", default="", metavar="DIR|FILE", help="directory of a pillar tree, or file of pillar data"
    )
    parser.add_argument("--saltenv", default="", help="saltenv of the run (default: base)")
    parser.add_argument(
        "--id", default="", help="minion id (default: the id in the grains file, else in --config, else the host name)"
    )
    parser.add_argument(
        "--root", default="/", metavar="DIR", help="directory where the managed host's / is mounted (default: /)"
    )


def parsed_options(given: argparse.Namespace, *, tree: str = "", grains: str = "") -> MinionOptions:
    """Return the description of the minion that the parsed command line gives. Raise CommandFault for missing files.

    ``tree`` is a state tree from a positional argument; ``grains`` is a file of grains.
    """
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
    return MinionOptions(roots, pillar, grains and _existing(grains, "grains"), given.saltenv, given.id, root, config)


@contextmanager
def runtime_of(options: MinionOptions, *, keep: str = "", jobs: Jobs | None = None) -> Iterator[Runtime]:
    """Yield a Runtime (modules, states, grains and pillar of the minion) in this process. Raise CommandFault for
    unusable options.

    Users' modules are synced to a temporary directory that is removed afterwards. ``keep`` is the directory for
    lasting data (backups of replaced files). ``jobs`` lists the running jobs of this host, so that state runs do not
    overlap.
    """
    grains = mapping_in(options.grains, "grains") if options.grains else None
    as_file = options.pillar and not Path(options.pillar).is_dir()
    pillar = mapping_in(options.pillar, "pillar") if as_file else None
    config = _options_in(options.config) if options.config else {}
    name = options.id or str((grains or {}).get("id") or config.get("id") or os.uname().nodename)
    with tempfile.TemporaryDirectory(prefix="statecore-") as scratch:
        opts: dict[str, object] = {
            "pillar_roots": {"base": []},
            **config,
            **(
                {"file_roots": {env: list(roots) for env, roots in options.file_roots.items()}}
                if options.file_roots
                else {}
            ),
            **({"pillar_roots": {"base": [options.pillar]}} if options.pillar and not as_file else {}),
            "id": name,
            "host_root": options.root,
            "extension_modules": f"{scratch}/extmods",
            "cachedir": keep or f"{scratch}/cache",
            # The user can read the pillar's files anyway, so a rendering error may show their content.
            "pillar_safe_render_error": False,
            **({"saltenv": options.saltenv} if options.saltenv else {}),
        }
        yield local_runtime(opts, grains=None if grains is None else {**grains, "id": name}, pillar=pillar, jobs=jobs)


def cachedir_of(options: MinionOptions) -> str:
    """Return the ``cachedir`` of the minion's configuration file; "" if there is none.

    Raise CommandFault if the configuration file cannot be read.
    """
    return str(_options_in(options.config).get("cachedir") or "") if options.config else ""


def _options_in(file: str) -> dict[str, object]:
    try:
        options = checked(mapping_in(file, "config"), file)
    except OptionFileError as error:
        raise CommandFault(f"config: {error}") from error
    return {name: value for name, value in options.items() if value is not None or name not in OPTIONS}


def mapping_in(file: str, what: str) -> dict[str, object]:
    """Return the map in a YAML or JSON file. Raise CommandFault with file and line if it holds no map.

    The output of ``salt-call --out json`` is accepted too: the map below its only key ``local`` is returned.
    """
    try:
        data = read_map(file)
    except OptionFileError as error:
        raise CommandFault(f"{what}: {error}") from error
    # salt-call --out json prints its return below the key "local".
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
