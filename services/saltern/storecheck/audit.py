"""The command ``saltern audit verify|export``: the record of who did what on the master.

``verify`` needs the master's secret, so it runs where a worker's key directory is. ``export`` prints what Redis has.

Source: docs/security.md#audit
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from masterstore.audit import ChainEnd
from masterstore.errors import StoreError, StoreUnavailable
from masterstore.record_mac import Records
from masterstore.store import Store
from saltern.kit.command.command_line import CommandError, Exit, run_command
from saltern.kit.command.launcher import INTERRUPTED
from saltern.kit.config.master import MasterOptions, load_master
from saltern.kit.keys.master_keys import MasterKeys, record_mac

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
        url = flags.redis_url or options.redis_url
        store = Store.open(url, timeout=_PATIENCE, client_name="audit", records=records)
        return _verify(store, options, flags.known) if flags.verb == "verify" else _export(store)
    except StoreUnavailable as error:
        raise CommandError(str(error), Exit.UNAVAILABLE) from error
    except StoreError as error:
        raise CommandError(str(error)) from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
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
        default=ChainEnd(),
        help="the end that an earlier verify printed: finds a Redis that was set back as a whole",
    )
    export = verbs.add_parser("export", help="print the entries as lines of JSON, without checking them")
    for verb in (verify, export):
        verb.add_argument(
            "-c", "--config-dir", metavar="DIR", help="directory of the configuration (default: /etc/salt)"
        )
        verb.add_argument(
            "--redis-url", metavar="URL", help="URL of Redis (default: the option redis_url of the configuration)"
        )
    return parser


def _known(text: str) -> ChainEnd:
    number, _, digest = text.partition(":")
    if not number.isdecimal() or not digest:
        raise argparse.ArgumentTypeError(f"{text!r}: must be NUMBER:HASH, as `saltern audit verify` prints it")
    return ChainEnd(int(number), digest)


def _verify(store: Store, options: MasterOptions, known: ChainEnd) -> int:
    found = store.audit.verify(kept=options.audit_kept, known=known)
    for fault in found.faults:
        sys.stdout.write(f"{fault}\n")
    if found.faults:
        sys.stdout.write(f"{found.entries} entries, {len(found.faults)} faults\n")
        return Exit.GENERIC
    sys.stdout.write(
        f"{found.entries} entries, {found.first} to {found.last}, no fault; end {found.last}:{found.hash}\n"
    )
    return Exit.OK


def _export(store: Store) -> int:
    for entry in store.audit.entries():
        try:
            shown = json.loads(entry.text)
        except (ValueError, RecursionError):
            shown = {"unreadable": entry.text.decode("utf-8", "replace")}
        # ASCII: control characters of peers reach no terminal.
        sys.stdout.write(
            json.dumps({"id": entry.stream_id, "entry": shown, "mac": entry.mac.decode("ascii", "replace")}) + "\n"
        )
    return Exit.OK
