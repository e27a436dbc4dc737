"""The parser for the command line of ``salt-key``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from saltern.kit.command.command_line import EXTERNAL_AUTH, CommandParser, RefusedOption
from saltern.kit.command.output.flags import add_output_flags

#: Prefix of the argument of ``--list`` -> name of the list in the master's answer; "all" is every list.
_LISTS: Mapping[str, str] = {
    "acc": "minions",
    "pre": "minions_pre",
    "un": "minions_pre",
    "rej": "minions_rejected",
    "den": "minions_denied",
}

_EPILOG = """\
MATCH is a glob for minion ids, or several separated by commas. Without an action all keys are listed.

examples:
  salt-key -L
  salt-key -y -a web1
  salt-key -d 'web*' --yes
  salt-key --preseed web3 --gen-keys-dir keys
  salt-key --import /etc/salt/pki/master

Exit codes: 0 done (also when nothing matched); 1 the master refused or the question was not answered;
64 wrong command line; 69 the master does not answer; 78 wrong configuration.
"""

#: Bits of a key pair: smaller ones are unsafe, larger ones are not read by any master.
_SMALLEST, _LARGEST = 2048, 16384


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Return the parsed command line of ``salt-key``; its ``action`` is (name of the action, its ids or files).

    Raise SystemExit with code 64 for a wrong command line.
    """
    made = parser()
    flags = made.parse(argv)
    if flags.words:
        hint = "-D takes no ids; use -d" if flags.action == ("delete", "*") else "separate several ids by commas"
        made.error(f"unexpected argument '{flags.words[0]}': {hint}")
    flags.action = action, word = flags.action or ("list", "all")
    if action == "list" and not word.startswith("all") and not list_named(word):
        made.error(f"'{word}' is not a valid argument to '--list'")
    return flags


def list_named(word: str) -> str:
    """Return the name of the key list for a word of ``salt-key --list``; empty text for an unknown word."""
    return next((name for start, name in _LISTS.items() if word.startswith(start)), "")


class _Action(argparse.Action):
    """Stores an action of ``salt-key`` and the ids that it applies to.

    ``const`` is (action, match). If the match is None, the option's argument is the match.
    """

    def __call__(self, parser: object, namespace: object, values: object, option_string: str | None = None) -> None:
        action, match = self.const
        setattr(namespace, self.dest, (action, values if match is None else match))


#: Short option, long option, action, its match (None: the option's argument), help text.
_ACTIONS = (
    (
        "-l",
        "--list",
        "list",
        None,
        "list the keys in a state: all, acc[epted], pre, un[accepted], rej[ected], den[ied]",
    ),
    ("-L", "--list-all", "list", "all", "list all keys"),
    ("-a", "--accept", "accept", None, "accept unaccepted keys"),
    ("-A", "--accept-all", "accept", "*", "accept all unaccepted keys"),
    ("-r", "--reject", "reject", None, "reject unaccepted keys"),
    ("-R", "--reject-all", "reject", "*", "reject all unaccepted keys"),
    ("-d", "--delete", "delete", None, "delete keys in any state"),
    ("-D", "--delete-all", "delete", "*", "delete all keys"),
    ("-p", "--print", "print", None, "print public keys"),
    ("-P", "--print-all", "print", "*", "print all public keys"),
    ("-f", "--finger", "finger", None, "print fingerprints"),
    ("-F", "--finger-all", "finger", "*", "print all fingerprints"),
    ("", "--gen-keys", "gen-keys", None, "make the key pair NAME.pem and NAME.pub in --gen-keys-dir"),
    (
        "",
        "--gen-signature",
        "gen-signature",
        "",
        "sign the master's public key, for minions with verify_master_pubkey_sign",
    ),
    (
        "",
        "--preseed",
        "preseed",
        None,
        "accept the key of minion ID before its first sign-in: the key of --pub, or a new pair",
    ),
    ("", "--import", "import", None, "import all minion keys from DIR, the pki_dir of a stock Salt master"),
    ("", "--export", "export", None, "write all minion keys to DIR in the layout of a stock Salt master"),
)

#: Action -> metavar of its argument.
_WORDS = {"list": "WORD", "gen-keys": "NAME", "preseed": "ID", "import": "DIR", "export": "DIR"}


def parser() -> CommandParser:
    """Return the parser for the command line of ``salt-key``."""
    # -l is --list, as in Salt, so it cannot be the log level.
    made = CommandParser(
        "salt-key", "salt-key [options]", "Manages the keys of minions.", _EPILOG, log_flags=("--log-level",)
    )
    actions = made.add_argument_group("actions").add_mutually_exclusive_group()
    for short, long, action, match, meaning in _ACTIONS:
        takes_word = match is None
        actions.add_argument(
            *filter(None, (short, long)),
            dest="action",
            action=_Action,
            nargs=None if takes_word else 0,
            const=(action, match),
            metavar=_WORDS.get(action, "MATCH") if takes_word else None,
            help=meaning,
        )
    for state in ("all", "accepted", "rejected", "denied"):
        made.add_argument(f"--include-{state}", action="store_true", help=f"also apply the action to {state} keys")
    made.add_argument("-q", "--quiet", action="store_true", help="print only the requested data")
    made.add_argument("-y", "--yes", action="store_true", help="do not ask before keys are changed")
    made.add_argument(
        "--finger-hash",
        default="",
        metavar="NAME",
        help="digest for fingerprints (default: hash_type of the configuration)",
    )
    made.add_argument(
        "--rotate-aes-key",
        type=_truth,
        metavar="BOOL",
        help="whether deleting a key replaces the AES key of publications (default: rotate_aes_key of the configuration)",
    )
    made.add_argument(
        "--preserve-minions",
        type=_truth,
        metavar="BOOL",
        help="whether cached grains and pillar of deleted minions are kept (default: False)",
    )
    made.add_argument(
        "--replace",
        action="store_true",
        help="replace existing keys by the imported ones (with --import and --preseed)",
    )
    _add_making(made)
    made.refuse(EXTERNAL_AUTH[1:])
    made.refuse([RefusedOption(("--auth", "--eauth", "--external-auth"), True, EXTERNAL_AUTH[0].instead)])
    add_output_flags(made)
    return made


def _add_making(made: CommandParser) -> None:
    group = made.add_argument_group("making keys")
    group.add_argument(
        "--gen-keys-dir",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="directory for new key pairs (default: the current directory)",
    )
    group.add_argument(
        "--keysize", type=_keysize, default=0, metavar="BITS", help="bits of a new key pair (default: keysize)"
    )
    group.add_argument(
        "-u",
        "--user",
        default="",
        metavar="USER",
        help="user who owns the files of a new key pair (default: the current user)",
    )
    group.add_argument("--pub", default="", metavar="FILE", help="file with the public key to sign or to preseed")
    group.add_argument("--priv", default="", metavar="FILE", help="file with the private key that signs")
    group.add_argument(
        "--signature-path",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="directory for the signature (default: the current directory)",
    )
    group.add_argument("--auto-create", action="store_true", help="make the key pair that signs, if it does not exist")


def _keysize(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of bits")
    bits = int(text)
    if not _SMALLEST <= bits <= _LARGEST:
        raise argparse.ArgumentTypeError(f"must be {_SMALLEST} to {_LARGEST} bits, not {bits}")
    return bits


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"'{text}' is neither True nor False")
    return text.lower() == "true"
