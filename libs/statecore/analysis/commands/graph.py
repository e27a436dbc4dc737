"""``statecore graph``: print the states of a run and their requisites as Mermaid, DOT, SVG or JSON."""

from __future__ import annotations

import argparse
import json

from statecore.analysis.commands.ending import Exit
from statecore.analysis.commands.setting import add_options, runtime_of, setting_of
from statecore.analysis.inspection.graph import FORMATS, drawn


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``graph``."""
    parser.add_argument("sls", nargs="*", metavar="SLS", help="SLS to draw (default: those that the top file assigns)")
    parser.add_argument("--format", choices=sorted(FORMATS), default="mermaid", help="output format (default: mermaid)")
    parser.add_argument(
        "--grains", default="", metavar="FILE", help="file of grains, YAML or JSON (default: the grains of this host)"
    )
    add_options(parser)


def run(given: argparse.Namespace) -> tuple[int, str]:
    """Return (exit code, output). Raise CommandFault or SlsError."""
    slses = [each for word in given.sls for each in word.split(",") if each] or None
    with runtime_of(setting_of(given, grains=given.grains)) as runtime:
        made = FORMATS[given.format](drawn(runtime.bench({"test": True}), slses))
    return Exit.OK, made if isinstance(made, str) else json.dumps(made, indent=2)
