"""The settings of a lab: from the command line, else from the lab's last start, else the defaults."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NotRequired, TypedDict

from saltern.lab.plan import API, PORTS, LabError, Settings, flag

#: Names of minions become names of files and of the lab's programs.
_MINION_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

_DEFAULT_TREE = "examples/srv"
_DEFAULT_MINIONS = ("web1", "web2")
_DEFAULT_WORKERS = 2


@dataclass(frozen=True)
class RequestedSettings:
    """The lab's settings that were given on the command line; None for each setting that was not given."""

    tree: Path | None = None
    minions: tuple[str, ...] | None = None
    workers: int | None = None
    api: bool | None = None
    #: Number added to every default port.
    shift: int | None = None
    ports: Mapping[str, int] | None = None


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``saltern lab up`` that are stored as settings."""
    parser.add_argument(
        "--tree",
        type=Path,
        metavar="DIR",
        help=f"directory with salt/, pillar/ and reactor/ (default: {_DEFAULT_TREE})",
    )
    parser.add_argument(
        "--minions",
        metavar="IDS",
        help=f"ids of the minions, separated by commas (default: {','.join(_DEFAULT_MINIONS)})",
    )
    parser.add_argument("--workers", type=int, metavar="N", help=f"number of mworkers (default: {_DEFAULT_WORKERS})")
    parser.add_argument(
        "--api",
        action=argparse.BooleanOptionalAction,
        help="also run Salt's REST API, for a user `admin` (default: no)",
    )
    parser.add_argument("--shift", type=int, metavar="N", help="number added to every default port (default: 0)")
    for name, row in PORTS.items():
        what = f"{row.meaning} {'each program, in a row' if not row.program else ''}".strip()
        parser.add_argument(flag(name), type=int, metavar="PORT", help=f"{what} (default: {row.default})")


def requested_settings(flags: argparse.Namespace) -> RequestedSettings:
    """Return the RequestedSettings of ``saltern lab up``: what its command line names, None for the rest. Raise LabError
    for invalid names of minions or a number of workers below 1.
    """
    return RequestedSettings(
        tree=flags.tree.absolute() if flags.tree else None,
        minions=_minions(flags.minions) if flags.minions is not None else None,
        workers=_workers(flags.workers) if flags.workers is not None else None,
        api=flags.api,
        shift=flags.shift,
        ports={name: port for name in PORTS if (port := getattr(flags, name)) is not None},
    )


def settle(wanted: RequestedSettings, last: Settings | None) -> Settings:
    """Return the settings with which the lab starts: the given ones, else those of the last start, else the defaults.

    Raise LabError if the state tree is missing.
    """
    shift = wanted.shift or 0
    usual = {name: row.default + shift for name, row in PORTS.items()}
    kept = last.ports if last is not None and wanted.shift is None else {}
    tree = wanted.tree or (last.tree if last else Path(_DEFAULT_TREE).absolute())
    if not (tree / "salt").is_dir():
        raise LabError(f"{tree} holds no directory salt/: name a state tree with --tree DIR")
    return Settings(
        tree=tree,
        minions=wanted.minions or (last.minions if last else _DEFAULT_MINIONS),
        workers=wanted.workers or (last.workers if last else _DEFAULT_WORKERS),
        ports={**usual, **kept, **(wanted.ports or {})},
        api=wanted.api if wanted.api is not None else last is not None and last.api,
    )


def dump(settings: Settings) -> str:
    """Return the lab's settings as JSON text, in the form that ``load`` reads."""
    values = {
        "tree": str(settings.tree),
        "minions": list(settings.minions),
        "workers": settings.workers,
        "ports": dict(settings.ports),
        "api": settings.api,
    }
    return json.dumps(values, indent=2) + "\n"


class _Saved(TypedDict):
    """The content of the JSON file with a lab's settings."""

    tree: str
    minions: list[str]
    workers: int
    ports: dict[str, int]
    #: Missing, as the port of the API is, in the settings of a lab of an earlier version.
    api: NotRequired[bool]


def load(path: Path) -> Settings | None:
    """Return the settings of the lab's last start; None for a new lab. Raise LabError for an invalid file."""
    try:
        values: _Saved = json.loads(path.read_text("utf-8"))
        return Settings(
            tree=Path(values["tree"]),
            minions=_minions(",".join(values["minions"])),
            workers=_workers(values["workers"]),
            ports={
                name: int(values["ports"].get(name, row.default) if row.program == API else values["ports"][name])
                for name, row in PORTS.items()
            },
            api=bool(values.get("api")),
        )
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, LabError) as error:
        raise LabError(
            f"{path}: not the settings of a lab ({error!r}); remove it to start from the defaults"
        ) from error


def differences(running: Settings, wanted: Settings) -> list[str]:
    """Return the differences between the running lab's settings and the requested ones, one text for each."""
    found = [
        f"{name} {now}, not {then}"
        for name, now, then in (
            ("--tree", running.tree, wanted.tree),
            ("--minions", ",".join(running.minions), ",".join(wanted.minions)),
            ("--workers", running.workers, wanted.workers),
            ("--api", running.api, wanted.api),
        )
        if now != then
    ]
    return found + [
        f"{flag(name)} {running.ports[name]}, not {port}"
        for name, port in wanted.ports.items()
        if running.ports[name] != port
    ]


def _minions(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise LabError("--minions: name at least one, such as --minions web1,web2")
    for name in names:
        if not _MINION_NAME.fullmatch(name):
            raise LabError(f"--minions: {name!r} is no name for a lab's minion: letters, digits, '.', '_' and '-'")
    return names


def _workers(number: int) -> int:
    if not isinstance(number, int) or number < 1:
        raise LabError(f"--workers: at least one is needed, not {number}")
    return number
