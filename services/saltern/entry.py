"""The command ``saltern``: runs every role and Saltern's own tools. A command's module is imported only when it is run."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import NamedTuple

from statecore.model.nearest import close_matches
from statecore.model.salt_version import SALTERN_VERSION


class Command(NamedTuple):
    """A command of ``saltern``: the module of its ``main(argv) -> int``, and its help text."""

    module: str
    summary: str
    #: Name of the function there.
    main: str = "main"


COMMANDS: Mapping[str, Command] = {
    "publisher": Command("saltern.publisher.main", "send jobs to minions (4505)"),
    "reqserver": Command("saltern.reqserver.main", "queue requests (4506, 4507) and hand them to workers (4516)"),
    "mworker": Command("saltern.mworker.main", "answer requests"),
    "eventpublisher": Command("saltern.eventpublisher.main", "run the event bus (4512, 4513)"),
    "reactor": Command("saltern.reactor.main", "start reactions for events"),
    "maintenance": Command("saltern.maintenance.main", "rotate keys, expire jobs, fire presence events"),
    "master": Command(
        "saltern.master.main", "run all roles of a master on this machine, and Redis if none is configured"
    ),
    "api": Command("saltern.api.main", "serve Salt's REST API (8000)"),
    "minion": Command("saltern.minion.main", "run jobs on a managed host"),
    "keygen": Command("saltern.kit.keys.keygen", "make the keys of all roles"),
    "check-config": Command("saltern.kit.config.check", "tell what is wrong or without effect in a configuration"),
    "rotate": Command("saltern.rotate.main", "replace keys, passwords and certificates while jobs run"),
    "import": Command("saltern.moving.main", "import configuration and keys of a stock Salt master", "import_main"),
    "export": Command("saltern.moving.main", "export configuration and keys for a stock Salt master", "export_main"),
    "node-labels": Command(
        "saltern.minion.duties.node_labels", "write a Kubernetes node's labels as grains of its minion"
    ),
    "store": Command("saltern.storecheck.main", "check, repair and migrate the data in Redis"),
    "audit": Command("saltern.storecheck.audit", "verify and export the record of who did what on the master"),
    "completion": Command("saltern.cli.completion", "print the completion script for bash, zsh or fish"),
    "complete": Command("saltern.cli.complete", "print completions for a command line (called by these scripts)"),
    "health": Command("saltern.kit.process.probe", "ask the role on this machine whether it is ready"),
    "lab": Command("saltern.lab.main", "run a master with two minions on loopback"),
}

#: sysexits' EX_USAGE, as Salt's commands have it.
EX_USAGE = 64

#: argparse's exit code for a wrong command line. No command of ours uses it for anything else.
_ARGPARSE = 2


def usage() -> str:
    """Return the text of ``saltern --help``."""
    rows = "\n".join(f"  {name:<15} {command.summary}" for name, command in COMMANDS.items())
    return (
        f"usage: saltern COMMAND [options]\n\n{rows}\n\n`saltern COMMAND --help` shows the options of a command.\n"
        "Operators use salt, salt-run, salt-key, salt-cp and eventlisten; managed hosts have salt-call and statecore.\n"
    )


def main(argv: list[str] | None = None) -> int:
    """Run the command that the first argument names. Return its exit code, or 64 for a wrong command line."""
    arguments = sys.argv[1:] if argv is None else argv
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.stdout.write(usage())
        return 0 if arguments else EX_USAGE
    if arguments == ["--version"]:
        sys.stdout.write(f"saltern {SALTERN_VERSION}\n")
        return 0
    name, *rest = arguments
    if name not in COMMANDS:
        near = close_matches(name, COMMANDS, n=1)
        sys.stderr.write(
            f"saltern: no command '{name}'" + (f"; the nearest is '{near[0]}'" if near else "") + "\n\n" + usage()
        )
        return EX_USAGE
    try:
        code: int = getattr(importlib.import_module(COMMANDS[name].module), COMMANDS[name].main)(rest)
    except SystemExit as end:
        raise SystemExit(EX_USAGE if end.code == _ARGPARSE else end.code) from None
    return code
