"""``statecore explain``: why a state runs at its position, and which file and line set each of its arguments."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

from statecore.analysis.commands.ending import Exit
from statecore.analysis.commands.setting import add_options, runtime_of, setting_of
from statecore.analysis.explain_text import explain_text
from statecore.analysis.inspection.explain import explain


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``explain``."""
    parser.add_argument("sls", metavar="SLS", help="SLS of the run, separated by commas; 'highstate' for the top file")
    parser.add_argument("wanted", metavar="ID", help="ID or name of a state of the run")
    parser.add_argument(
        "--grains", default="", metavar="FILE", help="file of grains, YAML or JSON (default: the grains of this host)"
    )
    add_options(parser)
    parser.add_argument("--out", choices=("text", "json"), default="text", help="output format (default: text)")


def run(given: argparse.Namespace) -> tuple[int, str]:
    """Return (exit code, output). Raise CommandFault or SlsError."""
    slses = None if given.sls == "highstate" else [each for each in given.sls.split(",") if each]
    with runtime_of(setting_of(given, grains=given.grains)) as runtime:
        told = explain(runtime.bench({"test": True}), slses, given.wanted)
    # Only ``path:line`` is shortened: a state's name may be an absolute path too.
    here = re.compile(rf"{re.escape(str(Path.cwd()))}/(?=[^\s()\"]*:\d)")
    return Exit.OK, json.dumps(told, indent=2, default=str) if given.out == "json" else explain_text(
        told, lambda text: here.sub("", text)
    )
