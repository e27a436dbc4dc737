"""``--module-executors`` and ``--executor-opts`` of ``salt`` and ``salt-call``: how a function is run."""

from __future__ import annotations

import argparse
from typing import Any

from saltern.kit.command.arguments import value_of
from saltern.kit.command.command_line import CommandParser


def add_executor_flags(parser: CommandParser) -> None:
    """The two flags."""
    parser.add_argument(
        "--module-executors", metavar="LIST", help="executors in place of the minion's, as in '[splay, direct_call]'"
    )
    parser.add_argument("--executor-opts", metavar="YAML", help="their options, as in '{splaytime: 30}'")


def executors(flags: argparse.Namespace) -> dict[str, Any]:
    """What a job carries of them: ``module_executors`` and ``executor_opts``, where they were given."""
    given = {name: getattr(flags, name) for name in ("module_executors", "executor_opts")}
    return {name: value_of(text) for name, text in given.items() if text}
