"""``statecore lsp``: serve editors with the language server protocol, on stdin and stdout."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from typing import Protocol

from statecore.analysis.commands.exit_codes import CommandFault, Exit


class LspRoom(Protocol):
    """The part of ``statecore.lsp`` that the command starts. It lies above this room, so it is imported by name."""

    def run(
        self,
        file_roots: dict[str, list[str]],
        pillar: str,
        grains: str,
        id: str,
        trust: bool,
    ) -> None:
        """Serve one editor until it ends."""
        ...


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``statecore lsp``."""
    parser.add_argument(
        "--file-root",
        action="append",
        default=[],
        metavar="[ENV=]DIR",
        help="directory of the state tree; repeatable (default: the editor's setting fileRoots, else its folder)",
    )
    parser.add_argument(
        "--pillar", default="", metavar="DIR|FILE", help="directory of a pillar tree, or file of pillar data"
    )
    parser.add_argument(
        "--grains", default="", metavar="FILE", help="file of grains (default: the grains of this host)"
    )
    parser.add_argument("--id", default="", help="minion id (default: the id in the grains file)")
    parser.add_argument(
        "--trust",
        action="store_true",
        help="run code of the tree while it is edited: all execution functions in templates, users' modules and renderers",
    )
    # Some editors pass it to every server.
    parser.add_argument("--stdio", action="store_true", help=argparse.SUPPRESS)


def run(given: argparse.Namespace) -> tuple[int, str]:
    """Serve one editor until it ends. Raise CommandFault if pygls is not installed or an option names nothing."""
    roots: dict[str, list[str]] = {}
    for text in given.file_root:
        env, equals, directory = text.partition("=")
        if not equals or "/" in env:
            env, directory = "base", text
        roots.setdefault(env, []).append(_existing(directory, "--file-root"))
    pillar, grains = (
        value and _existing(value, name) for name, value in (("--pillar", given.pillar), ("--grains", given.grains))
    )
    try:
        room: LspRoom = importlib.import_module("statecore.lsp.main")
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        text = f"the language server needs {error.name}: pip install 'saltern-statecore[lsp]'"
        raise CommandFault(text, Exit.ERRORS) from error
    room.run(roots, pillar, grains, given.id, given.trust)
    return Exit.OK, ""


def _existing(path: str, option: str) -> str:
    if not Path(path).exists():
        raise CommandFault(f"{option}: there is no {path}")
    return str(Path(path).absolute())
