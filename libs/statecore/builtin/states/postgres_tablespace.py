"""Salt's ``postgres_tablespace`` states: tablespaces of PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.types import Outcome, Plan, Step
from statecore.model.values import to_float
from statecore.system.databases import roles


def available(ctx: Context) -> str | None:
    """Return None if the ``postgres`` execution module is available, else the reason as text."""
    return roles.module_missing(ctx)


def present(
    ctx: Context,
    name: str,
    directory: str,
    options: Mapping[str, object] | None = None,
    owner: str | None = None,
    user: str | None = None,
    maintenance_db: str | None = None,
    db_password: str | None = None,
    db_host: str | None = None,
    db_port: object = None,
    db_user: str | None = None,
) -> Plan:
    """Create a tablespace of PostgreSQL, or change its options and owner.

    The server's user must own ``directory``. The state fails if the tablespace exists in another directory, because it
    cannot be moved.
    """
    to = roles.connection(user, maintenance_db, db_password, db_host, db_port, db_user)
    try:
        existing = ctx.call("postgres.tablespace_list", **to).get(name)
    except (CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    if existing is None:
        changes: dict[str, object] = {name: "Present"}

        def create() -> Outcome:
            try:
                ctx.call("postgres.tablespace_create", name, directory, options, owner, **to)
            except (CommandError, InvocationError) as error:
                return Outcome(f"Failed to create tablespace {name} ({error})", ok=False)
            return Outcome(f"The tablespace {name} has been created", changes)

        return Plan.change(
            f"Tablespace {name} is set to be created", [Step(f"create tablespace {name}", create)], changes
        )
    if existing["Location"] != directory:
        return Plan.failed(
            f"Tablespace {name} is not at the right location: it is at {existing['Location']}. "
            "This is unfixable without dropping and recreating the tablespace."
        )
    return _altered(ctx, name, existing, options or {}, owner, to)


def _altered(
    ctx: Context,
    name: str,
    existing: Mapping[str, str],
    options: Mapping[str, object],
    owner: str | None,
    to: dict[str, object],
) -> Plan:
    known = dict(each.partition("=")[::2] for each in existing["Opts"].strip("{}").split(",") if each)
    other = {key: value for key, value in options.items() if not _same(known.get(key), value)}
    new_owner = owner if owner and owner != existing["Owner"] else None
    if not other and not new_owner:
        return Plan.unchanged(f"Tablespace {name} is already present")
    changes = {name: {**({"owner": new_owner} if new_owner else {}), **({"options": other} if other else {})}}
    would = [f"Tablespace {name} owner to be altered"] if new_owner else []
    would += [f"Tablespace {name} options to be altered"] if other else []
    done = [f"Tablespace {name} owner changed"] if new_owner else []
    done += [f"Tablespace {name} opts changed"] if other else []

    def alter() -> Outcome:
        try:
            ctx.call("postgres.tablespace_alter", name, new_owner=new_owner, set_option=other, **to)
        except (CommandError, InvocationError) as error:
            return Outcome(f"Failed to alter tablespace {name} ({error})", ok=False)
        return Outcome("\n".join(done), changes)

    return Plan.change("\n".join(would), [Step(f"alter tablespace {name}", alter)], changes)


def _same(known: str | None, value: object) -> bool:
    """Return True if two values of a tablespace's option are equal as numbers: the server stores numbers as they were
    written.
    """
    try:
        return known is not None and float(known) == to_float(value)
    except (TypeError, ValueError):
        return False


def absent(
    ctx: Context,
    name: str,
    user: str | None = None,
    maintenance_db: str | None = None,
    db_user: str | None = None,
    db_password: str | None = None,
    db_host: str | None = None,
    db_port: object = None,
) -> Plan:
    """Remove a tablespace of PostgreSQL. The state fails if the tablespace contains objects."""
    to = roles.connection(user, maintenance_db, db_password, db_host, db_port, db_user)
    try:
        existing = ctx.call("postgres.tablespace_exists", name, **to)
    except (CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    if not existing:
        return Plan.unchanged(f"Tablespace {name} is not present, so it cannot be removed")
    changes = {name: "Absent"}

    def remove() -> Outcome:
        try:
            ctx.call("postgres.tablespace_remove", name, **to)
        except CommandError as error:
            return Outcome(f"Tablespace {name} failed to be removed ({error})", ok=False)
        return Outcome(f"Tablespace {name} has been removed", changes)

    return Plan.change(f"Tablespace {name} is set to be removed", [Step(f"remove tablespace {name}", remove)], changes)
