"""``statecore explain`` and ``statecore graph``: show the compiled states of a run without running them.

``explain`` prints why a state runs at its position, and which file and line set each of its arguments. ``graph`` prints
the states and their requisites as Mermaid, DOT, SVG or JSON.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

from statecore.analysis.commands.exit_codes import Exit
from statecore.analysis.commands.minion_options import add_options, parsed_options, runtime_of
from statecore.analysis.explain_text import explain_text
from statecore.analysis.inspection.explain import explain
from statecore.analysis.inspection.graph import FORMATS, drawn

_GRAINS_HELP = "file of grains, YAML or JSON (default: the grains of this host)"


def configure_explain(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``statecore explain``."""
    parser.add_argument("sls", metavar="SLS", help="SLS of the run, separated by commas; 'highstate' for the top file")
    parser.add_argument("wanted", metavar="ID", help="ID or name of a state of the run")
    parser.add_argument("--grains", default="", metavar="FILE", help=_GRAINS_HELP)
    add_options(parser)
    parser.add_argument("--out", choices=("text", "json"), default="text", help="output format (default: text)")


def run_explain(given: argparse.Namespace) -> tuple[int, str]:
    """Run ``statecore explain`` and return (exit code, output). Raise CommandFault for wrong options, SlsError if the
    tree does not compile or the run does not contain the ID.
    """
    slses = None if given.sls == "highstate" else [each for each in given.sls.split(",") if each]
    with runtime_of(parsed_options(given, grains=given.grains)) as runtime:
        explanation = explain(runtime.run_parts({"test": True}), slses, given.wanted)
    if given.out == "json":
        return Exit.OK, json.dumps(explanation, indent=2, default=str)
    # Only ``path:line`` is shortened: a state's name may be an absolute path too.
    here = re.compile(rf"{re.escape(str(Path.cwd()))}/(?=[^\s()\"]*:\d)")
    return Exit.OK, explain_text(explanation, lambda text: here.sub("", text))


def configure_graph(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``statecore graph``."""
    parser.add_argument("sls", nargs="*", metavar="SLS", help="SLS to draw (default: those that the top file assigns)")
    parser.add_argument("--format", choices=sorted(FORMATS), default="mermaid", help="output format (default: mermaid)")
    parser.add_argument("--grains", default="", metavar="FILE", help=_GRAINS_HELP)
    add_options(parser)


def run_graph(given: argparse.Namespace) -> tuple[int, str]:
    """Run ``statecore graph`` and return (exit code, output). Raise CommandFault for wrong options, SlsError if the
    tree does not compile.
    """
    slses = [each for word in given.sls for each in word.split(",") if each] or None
    with runtime_of(parsed_options(given, grains=given.grains)) as runtime:
        made = FORMATS[given.format](drawn(runtime.run_parts({"test": True}), slses))
    return Exit.OK, made if isinstance(made, str) else json.dumps(made, indent=2)
