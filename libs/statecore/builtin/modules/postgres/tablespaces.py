"""Functions of ``postgres`` for tablespaces: directories in which a PostgreSQL server stores databases."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from statecore.builtin.modules.postgres import client
from statecore.builtin.modules.postgres.client import Connection
from statecore.model.context import Context
from statecore.model.errors import InvocationError
from statecore.system.databases import postgres

_LIST = (
    'SELECT spcname AS "Name", r.rolname AS "Owner", spcacl AS "ACL", spcoptions AS "Opts",'
    ' pg_tablespace_location(t.oid) AS "Location" FROM pg_tablespace t JOIN pg_roles r ON r.oid = t.spcowner'
)

#: Names of tablespace options are plain words; their values are numbers.
_OPTION = re.compile(r"[a-z_]+")


def tablespace_list(
    ctx: Context,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> dict[str, dict[str, str]]:
    """Return the tablespaces of a PostgreSQL server: a map of name to Owner, ACL, Opts and Location.

    CLI Example:

        salt '*' postgres.tablespace_list
    """
    found = client.rows(ctx, Connection(user, host, port, maintenance_db, password, runas), _LIST)
    return {row.pop("Name"): row for row in found}


def tablespace_exists(
    ctx: Context,
    name: str,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> bool:
    """Return whether a PostgreSQL server has a tablespace."""
    return name in tablespace_list(ctx, user, host, port, maintenance_db, password, runas)


def tablespace_create(
    ctx: Context,
    name: str,
    location: str,
    options: Mapping[str, object] | None = None,
    owner: str | None = None,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> bool:
    """Create a tablespace in an empty directory that the PostgreSQL server's user owns. Return True. Raise CommandError
    if the server refuses.

    CLI Example:

        salt '*' postgres.tablespace_create tablespacename '/path/datadir'
    """
    whose = f" OWNER {postgres.identifier(owner)}" if owner else ""
    more = f" WITH ({', '.join(_option(*each) for each in options.items())})" if options else ""
    text = f"CREATE TABLESPACE {postgres.identifier(name)}{whose} LOCATION {postgres.literal(location)}{more};\n"
    client.execute(ctx, Connection(user, host, port, maintenance_db, password, runas), text)
    return True


def tablespace_alter(
    ctx: Context,
    name: str,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    new_name: str | None = None,
    new_owner: str | None = None,
    set_option: Mapping[str, object] | None = None,
    reset_option: str | None = None,
    runas: str | None = None,
) -> bool:
    """Change the owner, the options and last the name of a PostgreSQL tablespace, all or nothing. Return True.

    Raise CommandError if the server refuses.

    CLI Example:

        salt '*' postgres.tablespace_alter tsname new_owner=otheruser set_option="{'seq_page_cost': 1.1}"
    """
    alter = f"ALTER TABLESPACE {postgres.identifier(name)}"
    lines = [f"{alter} OWNER TO {postgres.identifier(new_owner)};"] if new_owner else []
    if set_option:
        lines.append(f"{alter} SET ({', '.join(_option(*each) for each in set_option.items())});")
    if reset_option:
        lines.append(f"{alter} RESET ({_word(reset_option)});")
    lines += [f"{alter} RENAME TO {postgres.identifier(new_name)};"] if new_name else []
    if lines:
        text = "\n".join(["BEGIN;", *lines, "COMMIT;", ""])
        client.execute(ctx, Connection(user, host, port, maintenance_db, password, runas), text)
    return True


def tablespace_remove(
    ctx: Context,
    name: str,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> bool:
    """Remove an empty tablespace of a PostgreSQL server. Return True. Raise CommandError if the server refuses."""
    to = Connection(user, host, port, maintenance_db, password, runas)
    client.execute(ctx, to, f"DROP TABLESPACE {postgres.identifier(name)};\n")
    return True


def _option(name: str, value: Any) -> str:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvocationError(f"{name}: options of a tablespace are numbers, not {value!r}") from None
    return f"{_word(name)} = {number:g}"


def _word(name: object) -> str:
    if _OPTION.fullmatch(str(name)) is None:
        raise InvocationError(f"{name!r} is not an option of a tablespace")
    return str(name)
