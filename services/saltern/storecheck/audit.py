"""The command ``saltern audit verify|export``: the record of who did what on the master.

``verify`` needs the master's secret, so it runs where a worker's key directory is. ``export`` prints what Redis has.

Source: docs/security.md#audit
"""

from __future__ import annotations

import argparse
import heapq
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from masterstore.audit_chain import AuditRecord, SealName, number_of, read_seal
from masterstore.errors import StoreError, StoreUnavailable
from masterstore.record_mac import Records
from masterstore.store import Store
from saltern.kit.command.command_line import CommandError, Exit, run_command
from saltern.kit.command.launcher import INTERRUPTED
from saltern.kit.config.master import load_master, operators_redis
from saltern.kit.keys.master_keys import MasterKeys, record_mac
from statecore.model.option_parser import OptionParser

#: Seconds to wait for one answer of Redis.
_PATIENCE = 30.0


def main(argv: Sequence[str]) -> int:
    """Run ``saltern audit``.

    Return exit code 0; 1 if the record was changed, 69 if Redis does not answer, 78 for a wrong configuration or no key.
    """
    return run_command(lambda: _run(argv), INTERRUPTED)


def _run(argv: Sequence[str]) -> int:
    flags = _parser().parse_args(argv)
    options = load_master(flags.config_dir)
    records = Records()
    if flags.verb == "verify":
        records = Records(record_mac(MasterKeys.load(Path(flags.keys)).secret))
    try:
        url = flags.redis_url or operators_redis(options, flags.config_dir)
        store = Store.open(url, timeout=_PATIENCE, client_name="audit", records=records)
        return _verify(store, flags.known) if flags.verb == "verify" else _export(store)
    except StoreUnavailable as error:
        raise CommandError(str(error), Exit.UNAVAILABLE) from error
    except StoreError as error:
        raise CommandError(str(error)) from error


def _parser() -> argparse.ArgumentParser:
    parser = OptionParser(
        prog="saltern audit",
        description="The record of who did what on the master: sign-ins that changed a key, publications, runners, wheel.",
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="{verify,export}")
    verify = verbs.add_parser(
        "verify", help="check that no entry was removed, changed, inserted or moved; exit code 1 if so"
    )
    verify.add_argument(
        "--keys", metavar="DIR", required=True, help="key directory of a worker (mworker), which has master.secret"
    )
    verify.add_argument(
        "--known",
        metavar="NUMBER:HASH",
        type=_known,
        default=SealName(),
        help="the seal that an earlier verify printed: finds a Redis that was set back as a whole",
    )
    export = verbs.add_parser("export", help="print the entries as lines of JSON, without checking them")
    for verb in (verify, export):
        verb.add_argument(
            "-c", "--config-dir", metavar="DIR", help="directory of the configuration (default: /etc/salt)"
        )
        verb.add_argument(
            "--redis-url",
            metavar="URL",
            help="URL of Redis (default: the operators' login in the directory of keys, else redis_url)",
        )
    return parser


def _known(text: str) -> SealName:
    number, _, digest = text.partition(":")
    if not number.isdecimal() or not digest:
        raise argparse.ArgumentTypeError(f"{text!r}: must be NUMBER:HASH, as `saltern audit verify` prints it")
    return SealName(int(number), digest)


def _verify(store: Store, known: SealName) -> int:
    found = store.audit.verify(known=known)
    for fault in found.faults:
        sys.stdout.write(f"{fault}\n")
    if found.faults:
        sys.stdout.write(f"{found.entries} entries, {len(found.faults)} faults\n")
        return Exit.GENERIC
    last = found.last
    sys.stdout.write(
        f"{found.entries} entries, {found.unsealed} of them not sealed yet, seals {found.first} to {last.number}, no fault;"
        f" end {last.number}:{last.hash}\n"
    )
    return Exit.OK


def _export(store: Store) -> int:
    """Print the audit record as lines: all entries, and each seal after the entries that it covers. Return exit code 0."""
    lines = heapq.merge(
        ((number_of(record.stream_id), 0, record) for record in store.audit.entries()),
        ((_covered(record), 1, record) for record in store.audit.seals()),
    )
    for _, kind, record in lines:
        sys.stdout.write(_line("seal" if kind else "entry", record) + "\n")
    return Exit.OK


def _covered(record: AuditRecord) -> tuple[int, int]:
    """Return the stream id of the last entry that a seal covers, as two numbers; the seal's own id if the seal is malformed."""
    seal = read_seal(record.text)
    return number_of(record.stream_id if seal is None else seal.last)


def _line(kind: str, record: AuditRecord) -> str:
    try:
        shown = json.loads(record.text)
    except (ValueError, RecursionError):
        shown = {"unreadable": record.text.decode("utf-8", "replace")}
    # ASCII: control characters of peers reach no terminal.
    return json.dumps({"id": record.stream_id, kind: shown, "mac": record.mac.decode("ascii", "replace")})
