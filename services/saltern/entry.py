"""``saltern``: runs every role and the house's own tools. A row's module is imported only when it is asked for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import NamedTuple

from statecore.model.nearest import close_matches


class Command(NamedTuple):
    """A word after ``saltern``: where its ``main(argv) -> int`` is, and what it does."""

    module: str
    summary: str
    #: Name of the function there.
    main: str = "main"


COMMANDS: Mapping[str, Command] = {
    "publisher": Command("saltern.publisher.main", "sends jobs to minions (4505)"),
    "reqserver": Command("saltern.reqserver.main", "takes requests (4506, 4507), hands them to workers (4516)"),
    "mworker": Command("saltern.mworker.main", "answers requests"),
    "eventpublisher": Command("saltern.eventpublisher.main", "the event bus (4512, 4513)"),
    "reactor": Command("saltern.reactor.main", "answers events with reactions"),
    "maintenance": Command("saltern.maintenance.main", "key rotation, expiry, presence"),
    "minion": Command("saltern.minion.main", "runs jobs on a managed host"),
    "keygen": Command("saltern.kit.keys.keygen", "makes the keys of all roles"),
    "import": Command("saltern.moving.main", "takes configuration and keys of a stock Salt master", "import_main"),
    "export": Command("saltern.moving.main", "writes them as a stock Salt master reads them", "export_main"),
    "node-labels": Command(
        "saltern.minion.duties.node_labels", "writes a Kubernetes node's labels as grains of its minion"
    ),
    "store": Command("saltern.storecheck.main", "looks through Redis for what is wrong, mends it, migrates it"),
    "completion": Command("saltern.cli.completion", "the script by which bash, zsh or fish completes the commands"),
    "complete": Command("saltern.cli.complete", "what may stand at the end of a command line; such scripts call it"),
    "health": Command("saltern.kit.process.probe", "asks the role on this machine whether it is ready"),
    "lab": Command("saltern.lab.main", "a whole master with two minions on loopback"),
}

#: sysexits' EX_USAGE, as Salt's commands have it.
EX_USAGE = 64

#: What argparse ends a process with for it. No command ends so by itself: they return their codes.
_ARGPARSE = 2


def usage() -> str:
    """What ``saltern --help`` prints."""
    rows = "\n".join(f"  {name:<15} {command.summary}" for name, command in COMMANDS.items())
    return (
        f"usage: saltern COMMAND [options]\n\n{rows}\n\n`saltern COMMAND --help` tells a command's options.\n"
        "Operators have salt, salt-run, salt-key, salt-cp and eventlisten; hosts salt-call and statecore.\n"
    )


def main(argv: list[str] | None = None) -> int:
    """Runs the command named by the first argument. Exit code: the command's own, 64 for a wrong command line."""
    arguments = sys.argv[1:] if argv is None else argv
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.stdout.write(usage())
        return 0 if arguments else EX_USAGE
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
