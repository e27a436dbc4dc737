"""``saltern completion bash|zsh|fish``: prints the script that a shell reads to complete Saltern's commands."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from statecore.model.option_parser import OptionParser

SHELLS = ("bash", "fish", "zsh")


def main(argv: Sequence[str]) -> int:
    """Print the completion script of a shell. Return the exit code: 0; 64 for an unknown shell."""
    parser = OptionParser(prog="saltern completion", description=__doc__)
    parser.add_argument("shell", choices=SHELLS)
    sys.stdout.write(script(parser.parse_args(argv).shell))
    return 0


def script(shell: str) -> str:
    """Return the completion script for ``bash``, ``fish`` or ``zsh`` as text."""
    return Path(__file__).with_name("shells").joinpath(shell).read_text("utf-8")
