"""``statecore check TREE``: all that is wrong or odd in a state tree, for people, programs and code hosts."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from urllib.parse import quote

from statecore.analysis.check_text import check_text, sarif
from statecore.analysis.commands.ending import Exit
from statecore.analysis.commands.setting import add_options, runtime_of, setting_of
from statecore.analysis.finding import Finding, count, merged
from statecore.analysis.inspection.check import check
from statecore.analysis.rules import Level


def configure(parser: argparse.ArgumentParser) -> None:
    """Options."""
    parser.add_argument("tree", metavar="TREE", help="directory of the state tree")
    parser.add_argument("sls", nargs="*", metavar="SLS", help="only these SLS (default: the top file and all)")
    parser.add_argument(
        "--grains", action="append", default=[], metavar="FILE", help="YAML or JSON; again for more minions at once"
    )
    add_options(parser)
    parser.add_argument("--out", choices=sorted(FORMATS), default="text", help="how to tell it (default: text)")
    parser.add_argument("--warnings", action="store_true", help="end with 1 on warnings too")


def run(given: argparse.Namespace) -> tuple[int, str]:
    """Exit code and what to print. Raises CommandFault."""
    runs: dict[str, Sequence[Finding]] = {}
    for grains in given.grains or [""]:
        setting = setting_of(given, tree=given.tree, grains=grains)
        with runtime_of(setting) as runtime:
            bench = runtime.bench({"test": True})
            runs[grains] = check(bench, given.sls, pillar_known=bool(given.pillar))
    findings = merged(runs)
    failing = {Level.ERROR, Level.WARNING} if given.warnings else {Level.ERROR}
    code = Exit.ERRORS if any(finding.level in failing for finding in findings) else Exit.OK
    return code, FORMATS[given.out](findings)


def _text(findings: Sequence[Finding]) -> str:
    return check_text(findings, _shown)


def _json(findings: Sequence[Finding]) -> str:
    told = [finding.as_data() | ({"file": _shown(finding.mark.file)} if finding.mark else {}) for finding in findings]
    return json.dumps({"version": 1, "summary": count(findings), "findings": told}, indent=2)


def _sarif(findings: Sequence[Finding]) -> str:
    try:
        own = version("saltern-statecore")
    except PackageNotFoundError:
        own = "0"
    return json.dumps(sarif(findings, lambda file: quote(_shown(file)), own), indent=2)


#: ``--out`` -> how findings are told.
FORMATS: Mapping[str, Callable[[Sequence[Finding]], str]] = {"text": _text, "json": _json, "sarif": _sarif}


def _shown(text: str) -> str:
    """A file, or a text that names some, as one who stands in the current directory names it."""
    return text.replace(f"{Path.cwd()}/", "")
