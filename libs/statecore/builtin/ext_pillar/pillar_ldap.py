"""External pillar ``pillar_ldap``: entries of an LDAP directory, found by searches of a YAML file.

.. code-block:: yaml

    ext_pillar:
      - pillar_ldap: /etc/salt/pillar_ldap.yaml

The file is a Jinja template whose variables are the minion's grains. It names searches, and settings of each:

.. code-block:: yaml

    base: &base
      server: ldap.example       # with port, tls, binddn, bindpw, anonymous
      dn: ou=hosts,dc=example
    hosts:
      <<: *base
      scope: 1                   # 0 the entry itself, 1 one level, 2 all below
      filter: (cn={{ id }})
      mode: map                  # or dict, split
      attrs: [cn]                # one value each
      lists: [memberOf]          # all values
    search_order: [hosts]

The extra ``saltern-statecore[ldap]`` brings the client.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import ldap3
from ldap3.core.exceptions import LDAPException

from statecore.model import yaml
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.render.jinja.closed import ClosedEnvironment

#: Seconds to wait for the server.
_TIMEOUT = 20

_SCOPES = (ldap3.BASE, ldap3.LEVEL, ldap3.SUBTREE)

#: Names of an entry's own name in ``attrs``.
_OWN_NAME = ("dn", "distinguishedName")


class _Entry(NamedTuple):
    """One entry that a search of the LDAP directory found: its distinguished name, and a map of attribute to values."""

    dn: str
    attributes: Mapping[str, list[str]]


def ext_pillar(ctx: Context, minion_id: str, pillar: dict[str, object], config_file: str) -> dict[str, object]:
    """Return the data of all searches of a file, in its ``search_order``.

    config_file
        path of the file

    Raises CommandError if the file cannot be read, or the server does not answer.
    """
    config = _config(Path(config_file), ctx.grains)
    order = config.get("search_order")
    if not isinstance(order, list):
        raise CommandError(f"{config_file} has no list `search_order` with the names of searches")
    data: dict[str, object] = {}
    for name in order:
        search = config.get(name)
        if not isinstance(search, Mapping) or "filter" not in search:
            raise CommandError(f"{config_file}: the search '{name}' is no map with a `filter`")
        mode = str(search.get("mode") or "split")
        read = _MODES.get(mode)
        if read is None:
            raise CommandError(
                f"{config_file}: the search '{name}' has the mode '{mode}'; there are {', '.join(_MODES)}"
            )
        entries = _found(search)
        if entries:
            read(data, str(name), entries, search)
    return data


def _config(path: Path, grains: Mapping[str, object]) -> dict[str, Any]:
    # Grains are the minion's own words: they must not end a value, neither of a filter nor of YAML.
    env = ClosedEnvironment(undefined=jinja2.StrictUndefined, finalize=_escaped)
    try:
        data = yaml.load(env.from_string(path.read_text("utf-8")).render(dict(grains)), yaml.SLS)
    except (OSError, UnicodeDecodeError, jinja2.TemplateError) as error:
        raise CommandError(f"{path} cannot be read: {error}") from error
    except yaml.YamlFault as fault:
        raise CommandError(f"{path} is no YAML, line {fault.line} as rendered: {fault}") from fault
    if not isinstance(data, dict):
        raise CommandError(f"{path} must be a map of searches")
    return data


def _escaped(value: object) -> str:
    """Return a grain's text for a filter or a distinguished name: special characters as in RFC 4515 (``\\2a``)."""
    return re.sub(r"[^\w.@ -]", lambda found: "".join(f"\\{byte:02x}" for byte in found[0].encode()), str(value))


def _found(search: Mapping[str, Any]) -> list[_Entry]:
    """Return the entries of the LDAP directory that a search of the configuration file finds."""
    port, bind = int(search.get("port") or 389), search.get("binddn") if search.get("bindpw") else None
    place = str(search.get("uri") or search.get("server") or "localhost")
    wanted = [*_names(search, "attrs"), *_names(search, "lists"), str(search.get("dict_key_attr") or "dn")]
    wanted = [name for name in wanted if name not in _OWN_NAME]
    scope = search.get("scope")
    try:
        server = ldap3.Server(place, port=port, get_info=ldap3.NONE, connect_timeout=_TIMEOUT)
        before = ldap3.AUTO_BIND_TLS_BEFORE_BIND if search.get("tls") else ldap3.AUTO_BIND_NO_TLS
        login = {"user": bind, "password": search.get("bindpw")} if bind else {}
        options = {"receive_timeout": _TIMEOUT, "read_only": True, "check_names": False, "raise_exceptions": True}
        with ldap3.Connection(server, auto_bind=before, auto_referrals=False, **login, **options) as connection:
            connection.search(
                str(search.get("dn") or ""),
                str(search["filter"]),
                _SCOPES[int(2 if scope is None else scope)],
                attributes=wanted or [ldap3.NO_ATTRIBUTES],
            )
            rows = [row for row in connection.response or () if row.get("type") == "searchResEntry"]
    except (LDAPException, OSError, IndexError, ValueError) as error:
        raise CommandError(f"LDAP at {place}:{port}, filter {search['filter']}: {error}") from error
    return [_Entry(row["dn"], {name: _texts(values) for name, values in row["raw_attributes"].items()}) for row in rows]


def _texts(values: Sequence[bytes]) -> list[str]:
    return [value.decode("utf-8", "backslashreplace") for value in values]


def _names(search: Mapping[str, Any], key: str) -> list[str]:
    given = search.get(key) or []
    return [str(name) for name in (given if isinstance(given, list) else [given])]


def _chosen(entry: _Entry, search: Mapping[str, Any]) -> dict[str, object]:
    """Return the attributes of an LDAP entry that a search asks for: the last value of each attribute in ``attrs``,
    all values of each in ``lists``.
    """
    attrs, lists = _names(search, "attrs"), _names(search, "lists")
    chosen: dict[str, object] = {"dn": entry.dn} if set(_OWN_NAME).intersection(attrs) else {}
    for name, values in entry.attributes.items():
        if name in attrs and values:
            chosen[name] = values[-1]
        if name in lists:
            chosen[name] = values
    return chosen


def _as_list(data: dict[str, object], name: str, entries: Sequence[_Entry], search: Mapping[str, Any]) -> None:
    data[name] = [_chosen(entry, search) for entry in entries]


def _as_map(data: dict[str, object], name: str, entries: Sequence[_Entry], search: Mapping[str, Any]) -> None:
    by = str(search.get("dict_key_attr") or "dn")
    found: dict[str, list[dict[str, object]]] = {}
    for entry in entries:
        key = entry.dn if by in _OWN_NAME else ",".join(sorted(entry.attributes.get(by, [])))
        found.setdefault(key, []).append(_chosen(entry, search))
    data[name] = found


def _as_pairs(data: dict[str, object], name: str, entries: Sequence[_Entry], search: Mapping[str, Any]) -> None:
    """Add to the pillar ``data`` what the first entry that an LDAP search found says in texts ``key=value`` (mode ``split``):
    the attribute value ``ntp=a.example`` becomes the pillar key ``ntp`` with the value ``a.example``.

    Of an attribute that the search names in ``attrs``, the last value of a key counts; of an attribute in ``lists``, the
    pillar key gets the list of all values. Values without ``=`` and other attributes are left out. ``entries``: at least one.
    ``name``, the search's name, is not used.
    """
    for attribute, values in entries[0].attributes.items():
        pairs = [value.split("=", 1) for value in values if "=" in value]
        for key, value in pairs:
            if attribute in _names(search, "attrs"):
                data[key] = value
            elif attribute in _names(search, "lists"):
                known = data.get(key)
                data[key] = [*known, value] if isinstance(known, list) else [value]


_MODES: Mapping[str, Callable[[dict[str, object], str, Sequence[_Entry], Mapping[str, Any]], None]] = {
    "map": _as_list,
    "dict": _as_map,
    "split": _as_pairs,
}
