"""External pillar ``consul``: keys of Consul's key-value store, as nested maps.

.. code-block:: yaml

    my_consul:
      consul.host: consul.example    # default 127.0.0.1
      consul.port: 8500
      consul.token: ...
      consul.scheme: https
      consul.dc: dc1                 # or a map of pattern of pillarenv to data center

    ext_pillar:
      - consul: my_consul root=salt/%(minion_id)s
      - consul: my_consul root=shared pillar_root=consul/shared target="G@os:Debian" expand_keys=false
"""

from __future__ import annotations

import base64
import json
import re
import urllib.parse
from collections.abc import Mapping
from typing import Any

from statecore.model import substitution, yaml
from statecore.model.context import Context
from statecore.model.errors import CommandError, TargetError
from statecore.model.values import traverse, update
from statecore.sources.http import Exchange, exchange
from statecore.targeting.match import Subject, matches

VIRTUAL = "consul"

_DEFAULTS: Mapping[str, Any] = {
    "host": "127.0.0.1",
    "port": 8500,
    "scheme": "http",
    "token": None,
    "dc": None,
    "verify": True,
}

#: Seconds for the answer.
_TIMEOUT = 30.0


def ext_pillar(ctx: Context, minion_id: str, pillar: dict[str, object], conf: str) -> dict[str, object]:
    """Return the keys below a path of Consul.

    conf
        name of the option with the server's settings, and ``root=`` (path of the keys; with ``%(minion_id)s``,
        ``%(role)s`` and ``%(environment)s`` of the grains), ``pillar_root=`` (path in pillar), ``target="COMPOUND"`` (for
        these minions only), ``expand_keys=false`` (values are texts, not YAML)

    Raises CommandError if Consul does not answer, for values that are no YAML, and for a malformed ``conf``.
    """
    target, rest = _taken(conf, r'target="(.*?)"')
    try:
        if target and not matches(target, "compound", Subject(minion_id, ctx.grains, pillar)):
            return {}
    except TargetError as error:
        raise CommandError(f"the target '{target}' cannot be understood: {error}") from error
    root, rest = _taken(rest, r"(?<!_)root=(\S*)")
    below, rest = _taken(rest, r"pillar_root=(\S*)")
    expand, rest = _taken(rest, r"(?i)expand_keys=(\S*)")
    profile, _ = _taken(rest, r"(?:profile=)?(\S+)")
    names: dict[str, object] = {name: traverse(ctx.grains, name) for name in ("role", "environment")}
    names["minion_id"] = minion_id
    try:
        # As in Salt, a grain that is missing is the name None.
        path = substitution.percent_filled(root, lambda name: _name(names, name)).rstrip("/")
    except (substitution.MalformedPattern, substitution.MissingValue) as error:
        raise CommandError(f"root={root} is malformed: {error}") from error
    settings = _settings(ctx, profile)
    found: dict[str, object] = {}
    for key, value in reversed(_items(settings, path)):
        if not key.endswith("/") and value is not None:
            found = _over(found, key, _read(key, value, expand.lower() != "false"))
    for part in reversed([part for part in below.split("/") if part]):
        found = {part: found}
    return found


def _name(names: Mapping[str, object], name: str) -> str:
    value = substitution.value_of(name, names)
    return "None" if value is None else substitution.segment(value, f"the grain {name}")


def _taken(text: str, pattern: str) -> tuple[str, str]:
    """Search ``text`` for ``pattern``. Return (the match's first group, the text without the match); ("", text) if
    there is no match.
    """
    found = re.search(pattern, text)
    return ("", text) if found is None else (found[1], text.replace(found[0], "", 1))


def _settings(ctx: Context, profile: str) -> dict[str, Any]:
    named = ctx.opts.get(profile) if profile else ctx.opts
    if not isinstance(named, Mapping):
        raise CommandError(f"there is no option '{profile}' with the settings of Consul (consul.host and others)")
    given = {str(key).removeprefix("consul."): value for key, value in named.items() if str(key).startswith("consul.")}
    settings = {**_DEFAULTS, **given}
    settings["dc"] = _datacenter(settings["dc"], str(ctx.opts.get("pillarenv") or "base"))
    return settings


def _datacenter(named: object, pillarenv: str) -> object:
    """Return the name of the data center for a pillarenv. If the option is a map of patterns, that of the longest
    pattern that matches.
    """
    if not isinstance(named, Mapping):
        return named
    for pattern, target in sorted(named.items(), key=lambda row: (-len(row[0]), row[0])):
        found = re.match(pattern, pillarenv)
        if found is not None:
            return _with_groups(str(target), found.groupdict())
    return None


def _with_groups(target: str, groups: Mapping[str, object]) -> str:
    return substitution.filled(target, lambda name: str(substitution.value_of(name, groups)))


def _items(settings: Mapping[str, Any], path: str) -> list[tuple[str, bytes | None]]:
    """Return a list of (key relative to the path, value) for all keys below a path of Consul."""
    words = {"recurse": "true", **({"dc": settings["dc"]} if settings["dc"] else {})}
    place = f"{settings['scheme']}://{settings['host']}:{settings['port']}"
    prefix = f"{path}/" if path else ""
    headers = {"X-Consul-Token": str(settings["token"])} if settings["token"] else {}
    url = f"{place}/v1/kv/{urllib.parse.quote(prefix)}?{urllib.parse.urlencode(words)}"
    try:
        answer = exchange(Exchange(url, headers=headers, verify_ssl=bool(settings["verify"]), timeout=_TIMEOUT))
    except CommandError as error:
        raise CommandError(f"Consul at {place} does not answer: {error}") from error
    if answer.status == 404:
        return []
    if answer.status >= 400:
        raise CommandError(f"Consul at {place} refuses the keys below '{path}': {answer.status} {answer.reason}")
    rows = [(str(row["Key"]).removeprefix(prefix), row["Value"]) for row in json.loads(answer.body or b"[]")]
    return [(key, None if value is None else base64.b64decode(value)) for key, value in rows if key]


def _read(key: str, value: bytes, expand: bool) -> object:
    text = value.decode("utf-8", "backslashreplace")
    if not expand:
        return text
    try:
        return yaml.load(text, yaml.SLS)
    except yaml.YamlFault as fault:
        raise CommandError(
            f"the key '{key}' of Consul holds no YAML: {fault} (expand_keys=false reads texts)"
        ) from fault


def _over(found: dict[str, object], key: str, value: object) -> dict[str, object]:
    nested: object = value
    for part in reversed(key.split("/")):
        nested = {part: nested}
    update(found, dict(nested) if isinstance(nested, Mapping) else {})
    return found
