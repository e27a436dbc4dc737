"""The command ``saltern store check|repair|migrate``: checks and repairs every key of the master in Redis while the roles work."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence

from masterstore.check import Check
from masterstore.client import Client
from masterstore.errors import StoreError, StoreUnavailable
from masterstore.keys import SCHEMA_VERSION
from masterstore.schema import Schema
from saltern.kit.command.command_line import CommandError, Exit, run_command
from saltern.kit.command.launcher import INTERRUPTED
from saltern.kit.config.master import MasterOptions, load_master, operators_redis
from statecore.model.option_parser import OptionParser

#: Seconds to wait for one answer of Redis; a step over a large key takes longer than the roles' commands.
_PATIENCE = 30.0


#: Most passes of a repair over all keys.
_GOES = 3


def main(argv: Sequence[str]) -> int:
    """Run ``saltern store check|repair|migrate``: print the faults, the repairs or the migrated jobs.

    Return exit code 0; 1 if a fault remains, 69 if Redis does not answer, 78 for a wrong configuration.
    """
    return run_command(lambda: _run(argv), INTERRUPTED)


def _run(argv: Sequence[str]) -> int:
    flags = _parser().parse_args(argv)
    options = load_master(flags.config_dir)
    try:
        client = Client(
            flags.redis_url or operators_redis(options, flags.config_dir), timeout=_PATIENCE, client_name="store"
        )
        return _VERBS[flags.verb](client, options)
    except StoreUnavailable as error:
        raise CommandError(str(error), Exit.UNAVAILABLE) from error
    except StoreError as error:
        raise CommandError(str(error)) from error


def _parser() -> argparse.ArgumentParser:
    parser = OptionParser(
        prog="saltern store",
        description="Check every key of the master in Redis. The roles may work meanwhile.",
    )
    parser.add_argument(
        "verb",
        choices=tuple(_VERBS),
        help="check: print each fault, exit code 1 if there is any; repair: repair or delete faulty keys; "
        "migrate: convert jobs of an older schema to the current one",
    )
    parser.add_argument("-c", "--config-dir", metavar="DIR", help="directory of the configuration (default: /etc/salt)")
    parser.add_argument(
        "--redis-url",
        metavar="URL",
        help="URL of Redis (default: the operators' login in the directory of keys, else redis_url)",
    )
    return parser


def _check(client: Client, options: MasterOptions) -> int:
    looked = wrong = 0

    def one() -> None:
        nonlocal looked
        looked += 1

    for finding in Check(client).findings(options.keep_jobs_seconds, one):
        wrong += 1
        sys.stdout.write(f"{finding.line}" + (f" (repair: {finding.remedy})" if finding.remedy else "") + "\n")
    sys.stdout.write(f"{looked} keys looked at, {wrong} faults\n")
    return Exit.GENERIC if wrong else Exit.OK


def _repair(client: Client, options: MasterOptions) -> int:
    mended, left = 0, dict[str, None]()
    # A repair may reveal another fault: counters are checked only after the lives of a job can be read.
    for _ in range(_GOES):
        before, left = mended, {}
        for finding in Check(client).findings(options.keep_jobs_seconds):
            if finding.repair is None:
                left[finding.line] = None
            else:
                finding.repair()
                mended += 1
                sys.stdout.write(f"{finding.line}; {finding.remedy}\n")
        if mended == before:
            break
    for line in left:
        sys.stdout.write(f"{line}; not mended\n")
    sys.stdout.write(f"{mended} mended, {len(left)} left\n")
    return Exit.GENERIC if left else Exit.OK


def _migrate(client: Client, options: MasterOptions) -> int:
    version = Schema(client).version()
    if version is not None and version > SCHEMA_VERSION:
        raise CommandError(f"Redis is of schema {version}, this version knows {SCHEMA_VERSION}: use the newer version")
    count = Check(client).migrate(lambda jid: sys.stdout.write(f"{jid}\n"))
    for key, why in client.faults.known.items():
        sys.stdout.write(f"{key}: {why}; stepped over\n")
    sys.stdout.write(f"{count} jobs brought to schema {SCHEMA_VERSION}\n")
    return Exit.GENERIC if client.faults.total else Exit.OK


_VERBS: Mapping[str, Callable[[Client, MasterOptions], int]] = {"check": _check, "repair": _repair, "migrate": _migrate}
