"""``statecore check TREE``: print the problems of a state tree as text, JSON or SARIF.

A check renders the tree, and so runs its code. With ``--untrusted`` it runs none, as the language server does.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from statecore.analysis.check_text import check_text, sarif
from statecore.analysis.commands.exit_codes import CommandFault, Exit
from statecore.analysis.commands.minion_options import MinionOptions, add_options, parsed_options, runtime_of
from statecore.analysis.finding import Finding, count, merged
from statecore.analysis.inspection.check import check
from statecore.analysis.rules import Level
from statecore.model.salt_version import SALTERN_VERSION


class UntrustedRoom(Protocol):
    """The part of ``statecore.lsp`` that renders untrusted trees. It lies above this room, so it is imported by name."""

    def findings_of(
        self,
        file_roots: Mapping[str, Sequence[str]],
        pillar: str,
        grains: str,
        id: str,
        saltenv: str,
        slses: Sequence[str],
    ) -> tuple[list[Finding], str]:
        """Return the findings, and a sentence if the process that rendered is not wholly confined."""
        ...


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
    parser.add_argument(
        "--untrusted",
        action="store_true",
        help="run none of the tree's code: for pull requests and trees of others. Without it, a check runs the functions "
        "that templates call, and the tree's own modules and renderers, as this user",
    )


def run(given: argparse.Namespace) -> tuple[int, str]:
    """Run ``statecore check`` and return (exit code, output). Raise CommandFault for unusable options."""
    runs: dict[str, Sequence[Finding]] = {}
    if given.untrusted and (given.config or given.root != "/"):
        option = "--config" if given.config else "--root"
        raise CommandFault(f"{option} cannot be used with --untrusted, which reads the trees, pillar and grains alone")
    for grains in given.grains or [""]:
        options = parsed_options(given, tree=given.tree, grains=grains)
        if given.untrusted:
            runs[grains] = _of_untrusted(options, given.sls)
            continue
        with runtime_of(options) as runtime:
            parts = runtime.run_parts({"test": True})
            runs[grains] = check(parts, given.sls, pillar_known=bool(given.pillar))
    findings = merged(runs)
    failing = {Level.ERROR, Level.WARNING} if given.warnings else {Level.ERROR}
    code = Exit.ERRORS if any(finding.level in failing for finding in findings) else Exit.OK
    return code, FORMATS[given.out](findings)


def _of_untrusted(options: MinionOptions, slses: Sequence[str]) -> list[Finding]:
    """Return the findings about a tree whose code does not run. Raise CommandFault if it cannot be checked."""
    room: UntrustedRoom = importlib.import_module("statecore.lsp.untrusted")
    found, unconfined = room.findings_of(
        options.file_roots, options.pillar, options.grains, options.id, options.saltenv, slses
    )
    if unconfined:
        sys.stderr.write(f"statecore: {unconfined}\n")
    return found


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
