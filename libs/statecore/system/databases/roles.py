"""PostgreSQL users and groups: the Plan (comment, changes and steps to apply) that makes a role as a state wants it.

Users and groups are both roles; only the messages differ.

Salt: salt/states/postgres_user.py, salt/states/postgres_group.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError, NotAvailable
from statecore.model.types import Outcome, Plan, Step
from statecore.system.databases import postgres

#: Argument of a state -> key of the same attribute in the result of ``postgres.role_get``.
_FLAGS: Mapping[str, str] = {
    "createdb": "can create databases",
    "inherit": "inherits privileges",
    "login": "can login",
    "createroles": "can create roles",
    "replication": "replication",
    "superuser": "superuser",
}


def connection(
    user: str | None,
    maintenance_db: str | None,
    db_password: str | None,
    db_host: str | None,
    db_port: object,
    db_user: str | None,
) -> dict[str, object]:
    """Map of the connection arguments of the ``postgres`` execution functions (host, port, user, ...), from the arguments of a
    state.
    """
    return {
        "maintenance_db": maintenance_db,
        "runas": user,
        "host": db_host,
        "user": db_user,
        "port": db_port,
        "password": db_password,
    }


def module_missing(ctx: Context) -> str | None:
    """Return None if the ``postgres`` execution module is available on this minion, else the reason as text."""
    try:
        ctx.functions["postgres.psql_query"]
    except NotAvailable as missing:
        return str(missing)
    return None


def present(
    ctx: Context,
    kind: str,
    name: str,
    to: Mapping[str, object],
    flags: Mapping[str, bool | None],
    *,
    encrypted: object,
    password: object,
    refresh_password: bool | None,
    groups: object,
    default_password: object = None,
    valid_until: str | None = None,
) -> Plan:
    """Return the plan of a state that creates a PostgreSQL role, or changes it to these attributes (``kind`` is user or
    group).

    An attribute of None is left unchanged.
    """
    try:
        method = postgres.need_method(encrypted)
        if wrong := [each for each, value in flags.items() if value is not None and not isinstance(value, bool)]:
            raise InvocationError(f"{', '.join(wrong)}: True or False")
        wanted = _listed(groups)
        role = ctx.call("postgres.role_get", name, return_password=not refresh_password, **to)
        if role is None and password is None:
            password = default_password
        secret = None if password in (None, "") else str(password)
        update: dict[str, object] = {}
        if role is not None:
            if secret and not refresh_password and postgres.is_stored_hash(name, secret, role["password"], method):
                secret = None
            update = {each: value for each, value in flags.items() if value is not None and role[_FLAGS[each]] != value}
            update |= {"password": True} if secret else {}
            if valid_until is not None and _moment(ctx, valid_until, to) != role["expiry time"]:
                update["valid_until"] = valid_until
            if missing := [each for each in wanted if each not in role["groups"]]:
                update["groups"] = missing
    except (CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    if role is not None and not update:
        return Plan.unchanged(f"{kind.capitalize()} {name} is already present")
    verb = "update" if role is not None else "create"
    more = {} if kind == "group" else {"valid_until": valid_until}
    changes = {name: update or "Present"}

    def work() -> Outcome:
        try:
            ctx.call(
                f"postgres.{kind}_{verb}",
                name,
                encrypted=method,
                rolepassword=secret,
                groups=wanted,
                **flags,
                **more,
                **to,
            )
        except (CommandError, InvocationError) as error:
            return Outcome(f"Failed to {verb} {kind} {name} ({error})", ok=False)
        return Outcome(f"The {kind} {name} has been {verb}d", changes)

    return Plan.change(
        f"{kind.capitalize()} {name} is set to be {verb}d", [Step(f"{verb} {kind} {name}", work)], changes
    )


def absent(ctx: Context, kind: str, name: str, to: Mapping[str, object]) -> Plan:
    """Return the plan of a state that removes a PostgreSQL role (``kind``: user or group); no step if it does not exist."""
    title = f"{kind.capitalize()} {name}"
    try:
        there = ctx.call("postgres.user_exists", name, **to)
    except (CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    if not there:
        return Plan.unchanged(f"{title} is not present, so it cannot be removed")
    changes = {name: "Absent"}

    def work() -> Outcome:
        try:
            ctx.call(f"postgres.{kind}_remove", name, **to)
        except CommandError as error:
            return Outcome(f"{title} failed to be removed ({error})", ok=False)
        return Outcome(f"{title} has been removed", changes)

    return Plan.change(f"{title} is set to be removed", [Step(f"remove {kind} {name}", work)], changes)


def _listed(groups: object) -> list[str]:
    listed = groups.split(",") if isinstance(groups, str) else groups or []
    if not isinstance(listed, list):
        raise InvocationError(f"groups is a list, or names with commas between, not {groups!r}")
    return [str(each).strip() for each in listed]


def _moment(ctx: Context, text: object, to: Mapping[str, object]) -> str | None:
    """Return the date until which a role's password is valid, as the PostgreSQL server normalizes it; None for
    infinity.
    """
    query = f"SELECT {postgres.literal(text)}::timestamp(0) AS dt"
    found: str = ctx.call("postgres.psql_query", query, **to)[0]["dt"]
    return None if found in ("infinity", "") else found
