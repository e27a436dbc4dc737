"""Rules of iptables: build from arguments, parse from iptables-save.

Salt: salt/modules/iptables.py.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import TypedDict

from statecore.model.errors import InvocationError
from statecore.model.text_lines import lines_of

#: Options of targets. They are written after the jump, in this order.
_BEHIND_JUMP = """
    j jump add-set and-mark and-tos checksum-fill clamp-mss-to-pmtu clustermac ctevents ctmask del-set ecn-tcp-remove exist
    expevents gateway hash-init hashmode helper label local-node log-ip-options log-level log-prefix log-tcp-options
    log-tcp-sequence log-uid map-set mask mss new nfmask nflog-group nflog-prefix nflog-range nflog-threshold nodst notrack
    on-ip on-port or-mark or-tos persistent queue-balance queue-bypass queue-num random random-fully rateest-ewmalog
    rateest-interval rateest-name reject-with restore restore-mark sack-perm save-mark selctx set-class set-dscp
    set-dscp-class set-mark set-mss set-tos set-xmark strip-options timeout timestamp to to-destination to-ports to-source
    total-nodes tproxy-mark ttl-dec ttl-inc ttl-set type ulog-cprange ulog-nlgroup ulog-prefix ulog-qthreshold wscale
    xor-mark xor-tos zone zone-orig zone-reply dst-pfx hl-dec hl-inc hl-set hmark-dport-mask hmark-dst-prefix hmark-mod
    hmark-offset hmark-proto-mask hmark-rnd hmark-spi-mask hmark-sport-mask hmark-src-prefix hmark-tuple led-always-blink
    led-delay led-trigger-id queue-cpu-fanout src-pfx to-port addr and-mask delude honeypot or-mask prefix reset reuse
    set-mac shift static tarpit tname ttl
"""

#: Matches that have an option ``--name``, whose argument is ``name_``.
_NAMED = ("pknock", "quota2", "recent")

#: Arguments that are not options of a rule.
_NO_OPTION = ("name", "state", "chain", "save", "table", "position", "command", "full", "family", "rules")

_LONG = {
    "-A": "append",
    "-p": "protocol",
    "-s": "source",
    "-d": "destination",
    "-j": "jump",
    "-g": "goto",
    "-i": "in-interface",
    "-o": "out-interface",
    "-f": "fragment",
    "-c": "set-counters",
    "-m": "match",
    "--sport": "source_port",
    "--source-port": "source_port",
    "--dport": "destination_port",
    "--destination-port": "destination_port",
    "--sports": "source-ports",
    "--dports": "destination-ports",
    "--src-cc": "source-country",
    "--dst-cc": "destination-country",
}

_NOT = re.compile(r"(!|not)\s?")


def build(arguments: Mapping[str, object]) -> str:
    """Return the text of an iptables rule from the arguments of a call. Raises InvocationError if several ports are
    given without a protocol.
    """
    given = {key: value for key, value in arguments.items() if key not in _NO_OPTION}
    if "target" in given:
        given["jump"] = given.pop("target")
    rule: list[str] = []
    policy = given.get("match") == "policy"
    for key, flag in (("if", "-i"), ("of", "-o")):
        if key in given:
            rule.append(_option(flag, given.pop(key)))
    protocol = given.pop("protocol", None)
    if not policy:
        protocol = given.pop("proto", protocol)
    if protocol is not None:
        rule.append(_option("-p", protocol))
    rule += _matches(given, policy=policy)
    for each in _listed(given.pop("match-set", [])):
        rule.append(f"-m set {_option('--match-set', each)}")
    if "connstate" in given:
        rule += [*_once(rule, "-m state"), _option("--state", given.pop("connstate"))]
    for key in ("dport", "sport"):
        if key in given:
            rule.append(_option(f"--{key}", given.pop(key)))
    for key in ("dports", "sports"):
        if key in given:
            if protocol is None and "-m multiport" not in rule:
                raise InvocationError(f"{key}: protocol must be specified")
            rule += [*_once(rule, "-m multiport"), *_ports(key, given.pop(key))]
    if "comment" in given:
        rule += [*_once(rule, "-m comment"), f'--comment "{given.pop("comment")}"']
    if given.get("set"):
        rule.append(_option("--match-set", given.pop("set")))
    behind = [_target(key, given.pop(key)) for key in _BEHIND_JUMP.split() if key in given]
    rule += [_option(f"-{key}" if len(key) == 1 else f"--{key}", value) for key, value in given.items()]
    return " ".join([*rule, *behind])


def _matches(given: dict[str, object], *, policy: bool) -> list[str]:
    if "match" not in given:
        return []
    rule = []
    value = given.pop("match")
    for match in value if isinstance(value, list) else str(value).split(","):
        rule.append(f"-m {match}")
        if "name_" in given and str(match).strip() in _NAMED:
            rule.append(f"--name {given.pop('name_')}")
    if policy and "proto" in given:
        rule.append(_option("--proto", given.pop("proto")))
    return rule


def _ports(key: str, value: object) -> list[str]:
    ports = [str(each) for each in value] if isinstance(value, list) else [str(value)]
    inverted = any(each.startswith(("!", "not")) for each in ports)
    plain = [_NOT.sub("", each) if inverted else each for each in ports]
    return [*(["!"] if inverted else []), f"--{key} {','.join(plain)}"]


def _option(flag: str, value: object) -> str:
    text = "" if value is None else str(value)
    before = ""
    if text.startswith(("!", "not")):
        before, text = "! ", _NOT.sub("", text)
    return f"{before}{flag} {text}" if text else f"{before}{flag}"


def _target(key: str, value: object) -> str:
    if value in (None, ""):
        return f"--{key}"
    return f'--{key} "{value}"' if re.search(r"\s", str(value)) else f"--{key} {value}"


def _once(rule: list[str], match: str) -> list[str]:
    return [] if match in rule else [match]


def _listed(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, Iterable) and not isinstance(value, str) else [str(value)]


Chain = TypedDict(
    "Chain",
    {
        "policy": str,
        "packet count": str,
        "byte count": str,
        "rules": list[dict[str, list[str]]],
        "rules_comment": dict[str, dict[str, list[str]]],
    },
)


def parse(saved: str) -> dict[str, dict[str, Chain]]:
    """Map of table to chain to the chain's ``policy``, ``packet count``, ``byte count``, ``rules`` and
    ``rules_comment``, from the output of iptables-save.

    Each of the ``rules`` maps an option to its values. ``rules_comment`` maps a rule's comment to the rule.
    """
    tables: dict[str, dict[str, Chain]] = {}
    chains: dict[str, Chain] = {}
    for line in lines_of(saved):
        if line.startswith("*"):
            chains = tables.setdefault(line[1:].strip(), {})
        elif line.startswith(":"):
            chain, policy, counters = [*line[1:].split(), "-", "[0:0]"][:3]
            packets, _, octets = counters.strip("[]").partition(":")
            chains[chain] = {
                "policy": policy,
                "packet count": packets,
                "byte count": octets,
                "rules": [],
                "rules_comment": {},
            }
        elif line.startswith("-A "):
            options = _parsed(shlex.split(line))
            chain = options.pop("append")[0]
            if chain not in chains:
                continue
            chains[chain]["rules"].append(options)
            if "comment" in options:
                chains[chain]["rules_comment"][options["comment"][0]] = options
    return tables


def _parsed(words: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    inverted = ""
    key = ""
    for word in words:
        if word == "!":
            inverted = "! "
        elif re.match(r"--?[A-Za-z]", word):
            key = _LONG.get(word, word.lstrip("-"))
            found.setdefault(key, []).append(inverted)
            inverted = ""
        elif key:
            values = found[key]
            values[-1] += word if values[-1] in ("", "! ") else f" {word}"
    return found


def same(one: str, other: str) -> bool:
    """Return True if two outputs of iptables-save have the same chains, policies and rules.

    Comments and counters are ignored.
    """
    return _bare(one) == _bare(other)


def _bare(saved: str) -> list[str]:
    lines = (re.sub(r"\[\d+:\d+\]", "", line).strip() for line in lines_of(saved))
    return [line for line in lines if line and not line.startswith("#")]
