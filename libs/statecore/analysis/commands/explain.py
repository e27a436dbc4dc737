"""``statecore explain``: why a state runs when it does, and where everything it has comes from."""

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
    """Options."""
    parser.add_argument("sls", metavar="SLS", help="the run that is meant: SLS, or 'highstate' for the top file's")
    parser.add_argument("wanted", metavar="ID", help="an ID of it, or a name")
    parser.add_argument("--grains", default="", metavar="FILE", help="YAML or JSON (default: those of this host)")
    add_options(parser)
    parser.add_argument("--out", choices=("text", "json"), default="text", help="how to tell it (default: text)")


def run(given: argparse.Namespace) -> tuple[int, str]:
    """Exit code and what to print. Raises CommandFault, SlsError."""
    slses = None if given.sls == "highstate" else [each for each in given.sls.split(",") if each]
    with runtime_of(setting_of(given, grains=given.grains)) as runtime:
        told = explain(runtime.bench({"test": True}), slses, given.wanted)
    # Places alone: a name that begins like one is where the state works.
    here = re.compile(rf"{re.escape(str(Path.cwd()))}/(?=[^\s()\"]*:\d)")
    return Exit.OK, json.dumps(told, indent=2, default=str) if given.out == "json" else explain_text(
        told, lambda text: here.sub("", text)
    )
