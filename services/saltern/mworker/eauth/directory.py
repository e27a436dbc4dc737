"""The eauth backend ``ldap``: users and groups of a directory (OpenLDAP, Active Directory, FreeIPA).

Options are ``auth.ldap.*``, as Salt's. With ``binddn``, ``bindpw`` and ``filter`` the user's entry is searched, and the password is
tried on it. Without a filter ``binddn`` is the template of the user's own name (``uid={{ username }},ou=People,...``).

Salt: salt/auth/ldap.py
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from saltern.mworker.eauth.identity import EauthFault, Identity, missing

_DEFAULTS: Mapping[str, object] = {
    "server": "localhost",
    "port": "389",
    "scope": 2,
    "groupou": "Groups",
    "accountattributename": "memberUid",
    "groupattribute": "memberOf",
    "persontype": "person",
    "groupclass": "posixGroup",
}

#: Seconds to connect, and to wait for each answer.
_PATIENCE = 10.0

#: LDAP's result for a wrong password.
_INVALID_CREDENTIALS = 49


def check(settings: Mapping[str, object], user: str, password: str) -> Identity | None:
    """Check a user's password with an LDAP directory. Return the Identity with the user's groups; None for a wrong
    password. Raises EauthFault if the directory does not answer or an option is wrong.
    """
    try:
        import ldap3
        from ldap3.core.exceptions import LDAPException
        from ldap3.utils.conv import escape_filter_chars
    except ImportError as error:
        raise missing("ldap3", "ldap") from error
    options = {**_DEFAULTS, **_own(settings)}
    try:
        server = _server(ldap3, options)

        def bound(name: str, word: str, *, anonymous: bool = False) -> Any:
            """Return an LDAP connection that is signed in as ``name``; None if the password ``word`` is wrong. Raises
            EauthFault for any other refusal.
            """
            connection = ldap3.Connection(
                server,
                *(() if anonymous else (name, word)),
                client_strategy=options.get("_strategy", ldap3.SYNC),
                receive_timeout=_PATIENCE,
                raise_exceptions=False,
            )
            if options.get("starttls"):
                connection.start_tls()
            if connection.bind():
                return connection
            if connection.result["result"] == _INVALID_CREDENTIALS:
                return None
            raise EauthFault(f"the directory does not let {name or 'nobody'} in: {connection.result['description']}")

        return _identity(options, user, password, bound, escape_filter_chars)
    except LDAPException as error:
        raise EauthFault(f"the directory does not answer: {error}") from error


def _own(settings: Mapping[str, object]) -> dict[str, object]:
    prefix = "auth.ldap."
    return {name.removeprefix(prefix): value for name, value in settings.items() if name.startswith(prefix)}


def _server(ldap3: Any, options: Mapping[str, object]) -> Any:
    verify = ssl.CERT_NONE if options.get("no_verify") else ssl.CERT_REQUIRED
    tls = ldap3.Tls(validate=verify, ca_certs_file=options.get("cacertfile") or None)
    uri = str(options.get("uri") or "")
    port = int(str(options["port"]))
    address: dict[str, Any] = (
        {"host": uri} if uri else {"host": str(options["server"]), "port": port, "use_ssl": bool(options.get("tls"))}
    )
    return options.get("_server") or ldap3.Server(**address, tls=tls, connect_timeout=_PATIENCE, get_info=ldap3.NONE)


def _identity(
    options: Mapping[str, object], user: str, password: str, bound: Callable[..., Any], escape: Callable[[str], str]
) -> Identity | None:
    searcher = None
    if options.get("filter") and (options.get("anonymous") or (options.get("binddn") and options.get("bindpw"))):
        anonymous = bool(options.get("anonymous"))
        searcher = bound(str(options.get("binddn") or ""), str(options.get("bindpw") or ""), anonymous=anonymous)
        if searcher is None:
            raise EauthFault("auth.ldap.binddn and auth.ldap.bindpw: the directory does not accept the password")
        found = _entries(
            searcher,
            str(options.get("basedn") or ""),
            _filled(str(options["filter"]), escape(user)),
            [],
            scope=int(str(options["scope"])),
        )
        if len(found) != 1:
            # The directory checks a password for an unknown user, too: the time of the answer tells no names.
            with contextlib.suppress(EauthFault):
                bound(f"uid={_escaped_name(user)},{options.get('basedn') or ''}", password)
            return None
        name = found[0][0]
    elif options.get("binddn"):
        name = _filled(str(options["binddn"]), _escaped_name(user))
    else:
        raise EauthFault("the backend 'ldap' needs auth.ldap.binddn, or auth.ldap.filter with auth.ldap.anonymous")
    own = bound(name, password)
    if own is None:
        return None
    return Identity(user, tuple(dict.fromkeys(_groups(options, searcher or own, user, name, escape))))


def _groups(
    options: Mapping[str, object], connection: Any, user: str, name: str, escape: Callable[[str], str]
) -> Iterator[str]:
    base, account, of_user = (
        str(options.get(key) or "") for key in ("basedn", "accountattributename", "groupattribute")
    )
    if options.get("activedirectory"):
        wanted = f"(&(member={escape(name)})(objectClass={options['groupclass']}))"
        for _, values in _entries(connection, base, wanted, ["cn"]):
            yield from values.get("cn", [])
    elif options.get("freeipa"):
        where, wanted = str(options.get("group_basedn") or base), str(options.get("group_filter") or "")
        for entry, _ in _entries(connection, where, _filled(wanted, escape(user)), ["cn"]):
            yield _first_value(entry)
    else:
        where = f"ou={options['groupou']},{base}" if options.get("groupou") else base
        wanted = f"(&({account}={escape(user)})(objectClass={options['groupclass']}))"
        for entry, values in _entries(connection, where, wanted, ["cn", of_user]):
            yield from values.get("cn", [])
            if _first_value(entry) == user:
                yield from map(_first_value, values.get(of_user, []))


def _entries(
    connection: Any, base: str, wanted: str, attributes: list[str], *, scope: int = 2
) -> list[tuple[str, dict[str, list[str]]]]:
    """Return [(distinguished name, {attribute: texts})] of all LDAP entries below ``base`` that the filter ``wanted``
    matches.
    """
    scopes = ("BASE", "LEVEL", "SUBTREE")
    connection.search(
        base, wanted, search_scope=scopes[scope if scope in (0, 1, 2) else 2], attributes=attributes or None
    )
    found = []
    for row in connection.response or ():
        if row.get("type") == "searchResEntry":
            values = {
                name: [text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text) for text in texts]
                for name, texts in row.get("raw_attributes", {}).items()
            }
            found.append((str(row["dn"]), values))
    return found


def _filled(template: str, user: str) -> str:
    """Return the value of an ``auth.ldap.*`` option with the escaped user name in place of ``{{ username }}``."""
    for form in ("{{ username }}", "{{username}}", "%(username)s"):
        template = template.replace(form, user)
    return template


def _escaped_name(user: str) -> str:
    """Return a user name with its special characters escaped, for use in an LDAP distinguished name."""
    return "".join(f"\\{ord(char):02x}" if char in '\\,+"<>;=#/\0' or char.isspace() else char for char in user)


def _first_value(name: str) -> str:
    """Return the value of the first part of an LDAP distinguished name: ``admins`` of ``cn=admins,ou=Groups``."""
    return name.split(",")[0].split("=")[-1]
