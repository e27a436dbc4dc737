"""The parsers of what a peer or a user writes, each as a function of one text that raises nothing, for measurements.

A parser's own bound on its input is part of it: a text above the bound is refused at once.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from datetime import datetime

import jwt
from starlette.requests import cookie_parser

from saltern.api import bodies
from saltern.kit.command.arguments import parse_arguments, read_arguments
from saltern.kit.config.durations import seconds_of
from saltern.kit.jobs.batch import batch_size
from saltern.mworker.job_queries.filters import FilterFault, filter_of
from saltern.mworker.linear_regex import linear_regex
from saltwire.errors import PeerFault
from saltwire.pack import packb, unpackb
from statecore.model import salt_version, yaml
from statecore.model.errors import InvocationError, TargetError
from statecore.model.redaction import shown_arguments
from statecore.system.packages import package_versions
from statecore.system.packages.package_versions import apk, deb, rpm
from statecore.system.scheduling.dates import parse_date
from statecore.system.scheduling.job import _cron
from statecore.targeting.match import Subject, compile_target

Parser = Callable[[str], object]

_SUBJECT = Subject("web1.example", {"os": "Debian", "roles": ["web"], "ipv4": ["10.0.0.1"], "a": {"a": {"a": "b"}}}, {})
_NOW = datetime(2026, 1, 1)


def _target(kind: str) -> Parser:
    return lambda text: compile_target(text, kind, nodegroups={"one": "web*"})(_SUBJECT)


def _body(kind: str) -> Parser:
    return lambda text: bodies.read_body(kind, text.encode())


def _versions(module: object) -> Parser:
    compare: Callable[[str, str], int] = module.compare  # type: ignore[attr-defined]
    return lambda text: compare(text, text + "1")


#: Name -> parser. Each may raise the errors in ``_ERRORS``.
_PARSERS: Mapping[str, Parser] = {
    **{f"YAML, {each.documents}": (lambda text, each=each: yaml.load(text, each)) for each in yaml.DIALECTS},  # type: ignore[misc]
    "positions of keys": yaml.key_positions,
    "JSON body": _body("application/json"),
    "plain body": _body("text/plain"),
    "form": _body("application/x-www-form-urlencoded"),
    "argument of a form": lambda text: bodies.read_body("application/x-www-form-urlencoded", b"arg=" + text.encode()),
    "msgpack": lambda text: unpackb(text.encode("latin-1", "replace")),
    "msgpack of the text": lambda text: unpackb(packb({text: [text]})),
    "header Accept": bodies.accepted,
    "header Content-Type": lambda text: bodies.read_body(text, b"{}"),
    "header Cookie": cookie_parser,
    "JWT": jwt.get_unverified_header,
    "word": lambda text: parse_arguments([text]),
    "argument of a request": lambda text: parse_arguments([text], sent=True),
    "argument by name": lambda text: read_arguments([f"a={text}"], sent=True),
    "masked argument": lambda text: shown_arguments("cmd.run", [text]),
    "target glob": _target("glob"),
    "target list": _target("list"),
    "target grain": _target("grain"),
    "target compound": _target("compound"),
    "target ipcidr": _target("ipcidr"),
    "target by RE2": lambda text: linear_regex(text, False),
    "date": lambda text: parse_date(text, _NOW),
    "cron": _cron,
    "duration": seconds_of,
    "filter of jobs": lambda text: filter_of({"function": text, "after": text}, 0, lambda globs: []),
    "batch": lambda text: batch_size(text, 10),
    "version of Salt": salt_version.compared,
    "Debian version": _versions(deb),
    "RPM version": _versions(rpm),
    "apk version": _versions(apk),
    "version condition": lambda text: package_versions.conditions(text),
}

_ERRORS = (
    *(
        yaml.YamlFault,
        bodies.BodyFault,
        PeerFault,
        TargetError,
        InvocationError,
        FilterFault,
        jwt.PyJWTError,
        ValueError,
    ),
    *(json.JSONDecodeError, RecursionError, UnicodeError),
)


def _quiet(parser: Parser) -> Parser:
    def parse(text: str) -> None:
        with contextlib.suppress(*_ERRORS):
            parser(text)

    return parse


#: Fuzz target -> the parsers that it measures.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "growth_yaml": (*(name for name in _PARSERS if name.startswith("YAML, ")), "positions of keys"),
    "growth_json": ("JSON body", "plain body"),
    "growth_msgpack": ("msgpack", "msgpack of the text"),
    "growth_form": ("form", "argument of a form"),
    "growth_header": ("header Accept", "header Content-Type", "header Cookie"),
    "growth_jwt": ("JWT",),
    "growth_argument": ("word", "argument of a request", "argument by name", "masked argument", "batch"),
    "growth_target": ("target list", "target grain", "target compound", "target ipcidr", "target by RE2"),
    "growth_glob": ("target glob", "filter of jobs"),
    "growth_date": ("date", "duration"),
    "growth_cron": ("cron",),
    "growth_version": ("version of Salt", "Debian version", "RPM version", "apk version", "version condition"),
}

#: Name -> parser that raises none of its documented errors. Any other exception is a finding.
PARSERS: Mapping[str, Parser] = {name: _quiet(parser) for name, parser in _PARSERS.items()}
