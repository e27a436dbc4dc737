"""Functions of ``postgres`` for roles: users, which may log in, and groups. Passwords are hashed before they are sent
to the server.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass

from statecore.builtin.modules.postgres import client
from statecore.builtin.modules.postgres.client import Connection
from statecore.model.context import Context
from statecore.model.errors import InvocationError
from statecore.system.databases import postgres

_LIST = (
    'SELECT r.rolname AS "name", rolsuper AS "superuser", rolinherit AS "inherits privileges",'
    ' rolcreaterole AS "can create roles", rolcreatedb AS "can create databases", rolcanlogin AS "can login",'
    ' rolreplication AS "replication", rolconnlimit AS "connections",'
    " (SELECT array_agg(g.rolname) FROM pg_auth_members m JOIN pg_roles g ON m.roleid = g.oid WHERE m.member = r.oid)"
    ' AS "groups", rolvaliduntil::timestamp(0) AS "expiry time", rolconfig AS "defaults variables"'
)

_FLAGS = ("superuser", "inherits privileges", "can create roles", "can create databases", "can login", "replication")


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedRole:
    """Wanted attributes of a PostgreSQL role. An attribute that is None is not changed."""

    createdb: bool | None = None
    createroles: bool | None = None
    superuser: bool | None = None
    login: bool | None = None
    inherit: bool | None = None
    replication: bool | None = None
    connlimit: int | None = None
    valid_until: str | None = None
    groups: object = None
    #: The password's hash, in the form in which the server stores it.
    password: str | None = None

    def clauses(self) -> str:
        """Return the options of a CREATE ROLE or ALTER ROLE statement as text. Raise InvocationError for invalid
        values.
        """
        flags = {
            "INHERIT": self.inherit,
            "CREATEDB": self.createdb,
            "CREATEROLE": self.createroles,
            "SUPERUSER": self.superuser,
            "REPLICATION": self.replication,
            "LOGIN": self.login,
        }
        if wrong := [word for word, value in flags.items() if value is not None and not isinstance(value, bool)]:
            raise InvocationError(f"{', '.join(wrong).lower()} is True or False")
        found = [f"{'' if value else 'NO'}{word}" for word, value in flags.items() if value is not None]
        if self.connlimit is not None:
            if isinstance(self.connlimit, bool) or not isinstance(self.connlimit, int):
                raise InvocationError(f"connlimit is a number, not {self.connlimit!r}")
            found.append(f"CONNECTION LIMIT {self.connlimit}")
        if self.password is not None:
            found.append(f"PASSWORD {postgres.literal(self.password)}")
        if self.valid_until is not None:
            found.append(f"VALID UNTIL {postgres.literal(self.valid_until)}")
        return " ".join(found)

    def memberships(self, name: str) -> str:
        """Return the SQL statements that make the role a member of its groups."""
        listed = self.groups.split(",") if isinstance(self.groups, str) else self.groups or []
        if not isinstance(listed, list):
            raise InvocationError(f"groups is a list, or names with commas between, not {self.groups!r}")
        return "".join(
            f"GRANT {postgres.identifier(str(each).strip())} TO {postgres.identifier(name)};\n" for each in listed
        )


def user_list(
    ctx: Context,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
    return_password: bool = False,
) -> dict[str, dict[str, object]]:
    """Return the PostgreSQL roles: a map of name to a map with rights ("superuser", "can login", ...), "connections",
    "groups" and "expiry time"; with ``return_password`` also the password's hash.

    CLI Example:

        salt '*' postgres.user_list
    """
    # Only a superuser may read pg_authid.
    secret = ', (SELECT rolpassword FROM pg_authid a WHERE a.oid = r.oid) AS "password"' if return_password else ""
    query = f"{_LIST}{secret} FROM pg_roles r"
    found = client.rows(ctx, Connection(user, host, port, maintenance_db, password, runas), query)
    return {row["name"]: _described(row, return_password=return_password) for row in found}


def user_exists(
    ctx: Context,
    name: str,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> bool:
    """Return whether the PostgreSQL server has a role."""
    return name in user_list(ctx, user, host, port, maintenance_db, password, runas)


def role_get(
    ctx: Context,
    name: str,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
    return_password: bool = False,
) -> dict[str, object] | None:
    """Return one PostgreSQL role as a map with rights ("superuser", "can login", ...), "connections", "groups" and
    "expiry time"; None if there is none.
    """
    return user_list(ctx, user, host, port, maintenance_db, password, runas, return_password).get(name)


def user_create(
    ctx: Context,
    username: str,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    createdb: bool | None = None,
    createroles: bool | None = None,
    encrypted: object = None,
    superuser: bool | None = None,
    inherit: bool | None = None,
    login: bool | None = None,
    connlimit: int | None = None,
    replication: bool | None = None,
    rolepassword: str | None = None,
    valid_until: str | None = None,
    groups: object = None,
    runas: str | None = None,
) -> bool:
    """Create a PostgreSQL role that may log in. Return True; False if the role exists. Raise CommandError if the server
    refuses.
    """
    wanted = WantedRole(
        createdb=createdb,
        createroles=createroles,
        superuser=superuser,
        login=True if login is None else login,
        inherit=inherit is not False,
        replication=replication,
        connlimit=connlimit,
        valid_until=valid_until,
        groups=groups,
        password=_hashed(username, rolepassword, encrypted),
    )
    return _create(ctx, Connection(user, host, port, maintenance_db, password, runas), username, wanted)


def user_update(
    ctx: Context,
    username: str,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    createdb: bool | None = None,
    createroles: bool | None = None,
    encrypted: object = None,
    superuser: bool | None = None,
    inherit: bool | None = None,
    login: bool | None = None,
    connlimit: int | None = None,
    replication: bool | None = None,
    rolepassword: str | None = None,
    valid_until: str | None = None,
    groups: object = None,
    runas: str | None = None,
) -> bool:
    """Change the attributes of a PostgreSQL role. Return True; False if the role does not exist. Raise CommandError if
    the server refuses.
    """
    wanted = WantedRole(
        createdb=createdb,
        createroles=createroles,
        superuser=superuser,
        login=login,
        inherit=inherit,
        replication=replication,
        connlimit=connlimit,
        valid_until=valid_until,
        groups=groups,
        password=_hashed(username, rolepassword, encrypted),
    )
    return _update(ctx, Connection(user, host, port, maintenance_db, password, runas), username, wanted)


def user_remove(
    ctx: Context,
    username: str,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> bool:
    """Remove a PostgreSQL role. Return True; False if there is none. Raise CommandError if the role still owns
    objects.
    """
    to = Connection(user, host, port, maintenance_db, password, runas)
    if not user_exists(ctx, username, user, host, port, maintenance_db, password, runas):
        return False
    client.execute(ctx, to, f"DROP ROLE {postgres.identifier(username)};\n")
    return True


def group_create(
    ctx: Context,
    groupname: str,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    createdb: bool | None = None,
    createroles: bool | None = None,
    encrypted: object = None,
    superuser: bool | None = None,
    inherit: bool | None = None,
    login: bool | None = None,
    replication: bool | None = None,
    rolepassword: str | None = None,
    groups: object = None,
    runas: str | None = None,
) -> bool:
    """Create a PostgreSQL group: a role that may not log in. Return True; False if the role exists. Raise CommandError
    if the server refuses.
    """
    return user_create(
        ctx,
        groupname,
        user,
        host,
        port,
        maintenance_db,
        password,
        createdb=createdb,
        createroles=createroles,
        encrypted=encrypted,
        superuser=superuser,
        inherit=inherit,
        login=False if login is None else login,
        replication=replication,
        rolepassword=rolepassword,
        groups=groups,
        runas=runas,
    )


def group_update(
    ctx: Context,
    groupname: str,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    createdb: bool | None = None,
    createroles: bool | None = None,
    encrypted: object = None,
    superuser: bool | None = None,
    inherit: bool | None = None,
    login: bool | None = None,
    replication: bool | None = None,
    rolepassword: str | None = None,
    groups: object = None,
    runas: str | None = None,
) -> bool:
    """Change the attributes of a PostgreSQL group. Return True; False if the role does not exist. Raise CommandError if
    the server refuses.
    """
    return user_update(
        ctx,
        groupname,
        user,
        host,
        port,
        maintenance_db,
        password,
        createdb=createdb,
        createroles=createroles,
        encrypted=encrypted,
        superuser=superuser,
        inherit=inherit,
        login=login,
        replication=replication,
        rolepassword=rolepassword,
        groups=groups,
        runas=runas,
    )


def group_remove(
    ctx: Context,
    groupname: str,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> bool:
    """Remove a PostgreSQL group. Return True; False if there is none. Raise CommandError if the group still owns
    objects.
    """
    return user_remove(ctx, groupname, user, host, port, maintenance_db, password, runas)


def _described(row: dict[str, str], *, return_password: bool) -> dict[str, object]:
    facts: dict[str, object] = {name: row[name] == "t" for name in _FLAGS}
    facts["connections"] = int(row["connections"])
    facts["expiry time"] = row["expiry time"] if row["expiry time"] not in ("", "infinity") else None
    facts["defaults variables"] = row["defaults variables"]
    facts["groups"] = next(csv.reader([row["groups"].strip("{}")], escapechar="\\"), [])
    return facts | ({"password": row["password"]} if return_password else {})


def _hashed(name: str, password: object, encrypted: object) -> str | None:
    if password in (None, ""):
        return None
    return postgres.stored_hash(name, str(password), postgres.need_method(encrypted))


def _create(ctx: Context, to: Connection, name: str, wanted: WantedRole) -> bool:
    if name in user_list(ctx, to.user, to.host, to.port, to.maintenance_db, to.password, to.runas):
        return False
    return _say(ctx, to, f"CREATE ROLE {postgres.identifier(name)}", name, wanted)


def _update(ctx: Context, to: Connection, name: str, wanted: WantedRole) -> bool:
    if name not in user_list(ctx, to.user, to.host, to.port, to.maintenance_db, to.password, to.runas):
        return False
    return _say(ctx, to, f"ALTER ROLE {postgres.identifier(name)}", name, wanted)


def _say(ctx: Context, to: Connection, verb: str, name: str, wanted: WantedRole) -> bool:
    clauses = wanted.clauses()
    role = f"{verb}{' WITH ' if clauses else ''}{clauses};\n" if clauses or verb.startswith("CREATE") else ""
    # One transaction: a role without its groups must not remain after an error.
    client.execute(ctx, to, f"BEGIN;\n{role}{wanted.memberships(name)}COMMIT;\n", secrets=[wanted.password])
    return True
