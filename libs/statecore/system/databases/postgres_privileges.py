"""Privileges on PostgreSQL objects: the kinds of objects, and the SQL to query, grant and revoke privileges.

Facts from PostgreSQL's documentation, ddl-priv. The server's acldefault() has the privileges of an object without a
list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from statecore.model.errors import InvocationError
from statecore.system.databases.postgres import identifier, literal

#: Role name that means all roles.
PUBLIC = "public"

#: Object name that means all objects of a schema; also all privileges.
EVERY = "ALL"


@dataclass(frozen=True, slots=True)
class _ObjectKind:
    """A kind of PostgreSQL objects that have privileges (tables, schemas, functions, ...), and the SQL to select them."""

    #: Letter of the kind, for acldefault().
    letter: str
    privileges: tuple[str, ...]
    #: Columns of the access list and of the owner, and the tables that have them.
    acl: str
    owner: str
    source: str
    #: SQL expression of the object's quoted name.
    target: str
    #: SQL condition that selects the object by name.
    named: str
    #: True if objects of the kind are in a schema.
    in_schema: bool = False


_IN_SCHEMA = "pg_class o JOIN pg_namespace n ON n.oid = o.relnamespace"
_WHOLE = "format('%I.%I', n.nspname, o.relname)"

KINDS: Mapping[str, _ObjectKind] = {
    "table": _ObjectKind(
        "r",
        ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "MAINTAIN"),
        "relacl",
        "relowner",
        f"{_IN_SCHEMA} AND relkind IN ('r', 'v', 'm', 'p', 'f')",
        _WHOLE,
        "relname = {}",
        in_schema=True,
    ),
    "sequence": _ObjectKind(
        "s",
        ("SELECT", "UPDATE", "USAGE"),
        "relacl",
        "relowner",
        f"{_IN_SCHEMA} AND relkind = 'S'",
        _WHOLE,
        "relname = {}",
        in_schema=True,
    ),
    "function": _ObjectKind(
        "f",
        ("EXECUTE",),
        "proacl",
        "proowner",
        "pg_proc o JOIN pg_namespace n ON n.oid = o.pronamespace AND prokind <> 'p'",
        "format('%I.%I(%s)', n.nspname, o.proname, oidvectortypes(o.proargtypes))",
        "replace(o.proname || '(' || oidvectortypes(o.proargtypes) || ')', ' ', '') = replace({}, ' ', '')",
        in_schema=True,
    ),
    "schema": _ObjectKind(
        "n", ("USAGE", "CREATE"), "nspacl", "nspowner", "pg_namespace o", "format('%I', nspname)", "nspname = {}"
    ),
    "tablespace": _ObjectKind(
        "t", ("CREATE",), "spcacl", "spcowner", "pg_tablespace o", "format('%I', spcname)", "spcname = {}"
    ),
    "language": _ObjectKind(
        "l", ("USAGE",), "lanacl", "lanowner", "pg_language o", "format('%I', lanname)", "lanname = {}"
    ),
    "database": _ObjectKind(
        "d",
        ("CREATE", "TEMPORARY", "CONNECT"),
        "datacl",
        "datdba",
        "pg_database o",
        "format('%I', datname)",
        "datname = {}",
    ),
}

#: Kind whose objects are roles. A privilege on a role is membership in it.
GROUP = "group"


def kind_of(object_type: object) -> str:
    """Return the argument ``object_type`` in lower case ("table", "schema"). Raises InvocationError if PostgreSQL has no
    privileges on objects of that type.
    """
    found = str(object_type).lower()
    if found not in KINDS and found != GROUP:
        raise InvocationError(f"Invalid object_type: {object_type} provided; there are {', '.join([*KINDS, GROUP])}")
    return found


def wanted(kind: str, privileges: object) -> list[str]:
    """List of the wanted privilege names for a kind of PostgreSQL objects, from a list or a text with commas; ``ALL``
    replaces all others.

    Raise InvocationError for no privileges, or for one that objects of this kind do not have.
    """
    words = privileges.split(",") if isinstance(privileges, str) else privileges or ()
    if not isinstance(words, Sequence):
        raise InvocationError(f"privileges is a list of names, not {privileges!r}")
    names = [str(word).strip().upper() for word in words]
    if kind == GROUP:
        if names:
            raise InvocationError("The privileges option should not be set for object_type group")
        return []
    known = KINDS[kind].privileges
    if not names or not set(names) <= {*known, EVERY}:
        raise InvocationError(
            f"Invalid privilege(s): {', '.join(names)} provided for object {kind}; there are {', '.join([*known, EVERY])}"
        )
    return [EVERY] if EVERY in names else list(dict.fromkeys(names))


def held_query(kind: str, name: str, schema: str, *, defaults: bool) -> str:
    """Return an SQL query for the privileges that roles have on a PostgreSQL object, or on all objects of a schema.

    Its columns are ``target``, ``role``, ``privilege`` and ``grantable`` (``t``). An object without privileges has one
    row with its target only. With ``defaults``, the privileges that owner and public have by default are included.
    """
    of = KINDS[kind]
    chosen = [] if of.in_schema and name.upper() == EVERY else [of.named.format(literal(name))]
    chosen += [f"n.nspname = {literal(schema)}"] if of.in_schema else []
    acl = f"coalesce(o.{of.acl}, acldefault('{of.letter}', o.{of.owner}))" if defaults else f"o.{of.acl}"
    return (
        f"SELECT {of.target} AS target, CASE WHEN e.grantee = 0 THEN '{PUBLIC}' ELSE r.rolname END AS role,"
        f" e.privilege_type AS privilege, e.is_grantable AS grantable FROM {of.source}"
        f" LEFT JOIN LATERAL aclexplode({acl}) e ON true LEFT JOIN pg_roles r ON r.oid = e.grantee"
        f" WHERE {' AND '.join(chosen)}"
    )


def all_query(kind: str) -> str:
    """Return an SQL query for the names of all privileges that this PostgreSQL server has for a kind of objects (column
    ``privilege``).
    """
    return (
        f"SELECT privilege_type AS privilege FROM aclexplode(acldefault('{KINDS[kind].letter}', 10)) WHERE grantee = 10"
    )


def members_query(group: str) -> str:
    """Return an SQL query for the members of a PostgreSQL group role: columns ``role`` and ``admin`` (``t``)."""
    return (
        "SELECT r.rolname AS role, bool_or(m.admin_option) AS admin FROM pg_auth_members m JOIN pg_roles r ON m.member = r.oid"
        f" JOIN pg_roles g ON g.oid = m.roleid WHERE g.rolname = {literal(group)} GROUP BY r.rolname"
    )


def grant(kind: str, names: Sequence[str], targets: Sequence[str], role: str, *, option: bool) -> str:
    """Return the SQL statement that grants a role privileges on PostgreSQL objects, or membership in a group.

    ``option``: with the grant option.
    """
    if kind == GROUP:
        return f"GRANT {identifier(targets[0])} TO {identifier(role)}{' WITH ADMIN OPTION' if option else ''};\n"
    on = f"{kind.upper()} {', '.join(targets)}"
    return f"GRANT {', '.join(names)} ON {on} TO {_role(role)}{' WITH GRANT OPTION' if option else ''};\n"


def revoke(kind: str, names: Sequence[str], targets: Sequence[str], role: str) -> str:
    """Return the SQL statement that revokes a role's privileges on PostgreSQL objects, or its membership in a group."""
    if kind == GROUP:
        return f"REVOKE {identifier(targets[0])} FROM {identifier(role)};\n"
    return f"REVOKE {', '.join(names)} ON {kind.upper()} {', '.join(targets)} FROM {_role(role)};\n"


def _role(name: str) -> str:
    return "PUBLIC" if name == PUBLIC else identifier(name)
