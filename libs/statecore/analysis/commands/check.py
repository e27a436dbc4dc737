"""``statecore check TREE``: print the problems of a state tree as text, JSON or SARIF."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from statecore.analysis.check_text import check_text, sarif
from statecore.analysis.commands.exit_codes import Exit
from statecore.analysis.commands.minion_options import add_options, parsed_options, runtime_of
from statecore.analysis.finding import Finding, count, merged
from statecore.analysis.inspection.check import check
from statecore.analysis.rules import Level
from statecore.model.salt_version import SALTERN_VERSION


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command-line options of ``statecore check``."""
    parser.add_argument("tree", metavar="TREE", help="directory of the state tree")
    parser.add_argument(
        "sls", nargs="*", metavar="SLS", help="check only these SLS (default: the top file and all SLS)"
    )
    parser.add_argument(
        "--grains",
        action="append",
        default=[],
        metavar="FILE",
        help="file of grains (YAML or JSON); repeat it to check for several minions",
    )
    add_options(parser)
    parser.add_argument("--out", choices=sorted(FORMATS), default="text", help="output format (default: text)")
    parser.add_argument("--warnings", action="store_true", help="exit with 1 on warnings too")


def run(given: argparse.Namespace) -> tuple[int, str]:
    """Run ``statecore check`` and return (exit code, output). Raise CommandFault for unusable options."""
    runs: dict[str, Sequence[Finding]] = {}
    for grains in given.grains or [""]:
        options = parsed_options(given, tree=given.tree, grains=grains)
        with runtime_of(options) as runtime:
            parts = runtime.run_parts({"test": True})
            runs[grains] = check(parts, given.sls, pillar_known=bool(given.pillar))
    findings = merged(runs)
    failing = {Level.ERROR, Level.WARNING} if given.warnings else {Level.ERROR}
    code = Exit.ERRORS if any(finding.level in failing for finding in findings) else Exit.OK
    return code, FORMATS[given.out](findings)


def _text(findings: Sequence[Finding]) -> str:
    return check_text(findings, _shown)


def _json(findings: Sequence[Finding]) -> str:
    listed = [finding.as_data() | ({"file": _shown(finding.mark.file)} if finding.mark else {}) for finding in findings]
    return json.dumps({"version": 1, "summary": count(findings), "findings": listed}, indent=2)


def _sarif(findings: Sequence[Finding]) -> str:
    return json.dumps(sarif(findings, lambda file: quote(_shown(file)), SALTERN_VERSION), indent=2)


#: Value of ``--out`` -> function that formats the findings.
FORMATS: Mapping[str, Callable[[Sequence[Finding]], str]] = {"text": _text, "json": _json, "sarif": _sarif}


def _shown(text: str) -> str:

    return text.replace(f"{Path.cwd()}/", "")
