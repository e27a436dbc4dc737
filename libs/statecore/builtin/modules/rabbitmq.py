"""RabbitMQ through the host's ``rabbitmqctl`` and ``rabbitmq-plugins``: Salt's ``rabbitmq`` execution module.

``runas`` is the user who runs the programs; default: the minion's. Functions raise CommandError with the program's error
output.
"""

from __future__ import annotations

import json
import re
import secrets
import string
from collections.abc import Mapping, Sequence

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.text_lines import lines_of

#: Names of columns that newer versions print above their rows.
_HEADERS = (
    ("user", "tags"),
    ("name",),
    ("name", "messages"),
    ("component", "name", "value"),
    ("vhost", "name", "pattern", "apply-to", "definition", "priority"),
)

#: What a policy may apply to.
_APPLY_TO = ("all", "exchanges", "queues", "classic_queues", "quorum_queues", "streams")

#: First version whose ``authenticate_user`` tells of a wrong password.
_AUTHENTICATES = (3, 5, 7)


def available(ctx: Context) -> str | None:
    """Return None if the host has the program ``rabbitmqctl``; else return the reason as text."""
    return None if ctx.host.which("rabbitmqctl") else "the host has no program rabbitmqctl: RabbitMQ is not installed"


# ------------------------------------------------------------------------------------------------------ users


def list_users(ctx: Context, runas: str | None = None) -> dict[str, list[str]]:
    """Return a map of RabbitMQ user to the list of the user's tags. A user without tags has the list [""].

    CLI Example:

        salt '*' rabbitmq.list_users
    """
    rows = _rows(_ctl(ctx, ["list_users", "-q"], runas))
    return {row[0]: _tags("\t".join(row[1:])) for row in rows}


def user_exists(ctx: Context, name: str, runas: str | None = None) -> bool:
    """Return whether RabbitMQ has a user of this name.

    CLI Example:

        salt '*' rabbitmq.user_exists ann
    """
    return name in list_users(ctx, runas)


def add_user(ctx: Context, name: str, password: str | None = None, runas: str | None = None) -> dict[str, str]:
    """Add a user of RabbitMQ. Return ``{"Added": output of rabbitmqctl}``. Without a password the user cannot log in
    with one.

    CLI Example:

        salt '*' rabbitmq.add_user ann secret
    """
    letters = string.ascii_uppercase + string.digits
    given = password if password is not None else "".join(secrets.choice(letters) for _ in range(15))
    output = _ctl(ctx, ["add_user", name, given], runas, quiet=True)
    if password is None:
        try:
            clear_password(ctx, name, runas)
        except CommandError:
            # A user with a password that nobody knows must not stay.
            delete_user(ctx, name, runas)
            raise
    return {"Added": output}


def delete_user(ctx: Context, name: str, runas: str | None = None) -> dict[str, str]:
    """Delete a user of RabbitMQ. Return ``{"Deleted": output of rabbitmqctl}``.

    CLI Example:

        salt '*' rabbitmq.delete_user ann
    """
    return {"Deleted": _ctl(ctx, ["delete_user", name], runas)}


def change_password(ctx: Context, name: str, password: str, runas: str | None = None) -> dict[str, str]:
    """Change the password of a RabbitMQ user. Return ``{"Password Changed": output of rabbitmqctl}``.

    CLI Example:

        salt '*' rabbitmq.change_password ann secret
    """
    return {"Password Changed": _ctl(ctx, ["change_password", name, password], runas, quiet=True)}


def clear_password(ctx: Context, name: str, runas: str | None = None) -> dict[str, str]:
    """Remove the password of a RabbitMQ user. Return ``{"Password Cleared": output of rabbitmqctl}``.

    CLI Example:

        salt '*' rabbitmq.clear_password ann
    """
    return {"Password Cleared": _ctl(ctx, ["clear_password", name], runas)}


def check_password(ctx: Context, name: str, password: str, runas: str | None = None) -> bool:
    """Return whether a RabbitMQ user has the password ``password``.

    CLI Example:

        salt '*' rabbitmq.check_password ann secret
    """
    if _version(str(_run(ctx, "rabbitmqctl", ["status"], runas)["stdout"])) >= _AUTHENTICATES:
        result = _run(ctx, "rabbitmqctl", ["authenticate_user", name, password], runas, quiet=True)
        return not result["retcode"] and not result["stderr"]
    user, secret = (each.replace('"', '\\"') for each in (name, password))
    code = f'rabbit_auth_backend_internal:check_user_login(<<"{user}">>, [{{password, <<"{secret}">>}}]).'
    return "invalid credentials" not in _ctl(ctx, ["eval", code], runas, quiet=True)


def set_user_tags(ctx: Context, name: str, tags: object, runas: str | None = None) -> dict[str, str]:
    """Set the tags of a RabbitMQ user, a list or one text. Return ``{"Tag(s) set": output of rabbitmqctl}``.

    CLI Example:

        salt '*' rabbitmq.set_user_tags ann administrator
    """
    words = [str(each) for each in tags] if isinstance(tags, list | tuple) else [str(tags)]
    return {"Tag(s) set": _ctl(ctx, ["set_user_tags", name, *words], runas)}


# ------------------------------------------------------------------------------------------------ permissions


def set_permissions(
    ctx: Context,
    vhost: str,
    user: str,
    conf: str = ".*",
    write: str = ".*",
    read: str = ".*",
    runas: str | None = None,
) -> dict[str, str]:
    """Set the permissions of a RabbitMQ user in a virtual host: regular expressions of the names that the user may
    configure, write and read. Return ``{"Permissions Set": output of rabbitmqctl}``.

    CLI Example:

        salt '*' rabbitmq.set_permissions / ann '^app' '.*' '.*'
    """
    return {"Permissions Set": _ctl(ctx, ["set_permissions", "-p", vhost, user, conf, write, read], runas)}


def list_permissions(ctx: Context, vhost: str, runas: str | None = None) -> dict[str, dict[str, str]]:
    """Return the permissions in a virtual host of RabbitMQ: a map of user to a map of ``configure``, ``write`` and
    ``read`` to regular expressions.

    CLI Example:

        salt '*' rabbitmq.list_permissions /
    """
    return _by("user", _ctl(ctx, ["list_permissions", "--formatter=json", "-p", vhost], runas))


def list_user_permissions(ctx: Context, name: str, runas: str | None = None) -> dict[str, dict[str, str]]:
    """Return the permissions of a RabbitMQ user: a map of virtual host to a map of ``configure``, ``write`` and
    ``read`` to regular expressions.

    CLI Example:

        salt '*' rabbitmq.list_user_permissions ann
    """
    return _by("vhost", _ctl(ctx, ["list_user_permissions", name, "--formatter=json"], runas))


# --------------------------------------------------------------------------------------------- virtual hosts


def list_vhosts(ctx: Context, runas: str | None = None) -> list[str]:
    """Return the names of RabbitMQ's virtual hosts.

    CLI Example:

        salt '*' rabbitmq.list_vhosts
    """
    return [word for row in _rows(_ctl(ctx, ["list_vhosts", "-q"], runas)) for word in " ".join(row).split()]


def vhost_exists(ctx: Context, name: str, runas: str | None = None) -> bool:
    """Return whether RabbitMQ has a virtual host of this name.

    CLI Example:

        salt '*' rabbitmq.vhost_exists /app
    """
    return name in list_vhosts(ctx, runas)


def add_vhost(ctx: Context, vhost: str, runas: str | None = None) -> dict[str, str]:
    """Add a virtual host to RabbitMQ. Return ``{"Added": output of rabbitmqctl}``.

    CLI Example:

        salt '*' rabbitmq.add_vhost /app
    """
    return {"Added": _ctl(ctx, ["add_vhost", vhost], runas)}


def delete_vhost(ctx: Context, vhost: str, runas: str | None = None) -> dict[str, str]:
    """Delete a virtual host of RabbitMQ. Return ``{"Deleted": output of rabbitmqctl}``.

    CLI Example:

        salt '*' rabbitmq.delete_vhost /app
    """
    return {"Deleted": _ctl(ctx, ["delete_vhost", vhost], runas)}


def list_queues(ctx: Context, runas: str | None = None, *args: str) -> dict[str, list[str]]:
    """Return a map of RabbitMQ queue to the list of its values in the columns ``args``, by default the number of
    messages.

    CLI Example:

        salt '*' rabbitmq.list_queues root name messages consumers
    """
    return _queues(_ctl(ctx, ["list_queues", "-q", *args], runas), args)


def list_queues_vhost(ctx: Context, vhost: str, runas: str | None = None, *args: str) -> dict[str, list[str]]:
    """Return the queues of one virtual host of RabbitMQ: a map of queue to the list of its values in the columns
    ``args``.

    CLI Example:

        salt '*' rabbitmq.list_queues_vhost /app
    """
    return _queues(_ctl(ctx, ["list_queues", "-q", "-p", vhost, *args], runas), args)


# -------------------------------------------------------------------------------------- policies, upstreams


def list_policies(ctx: Context, vhost: str = "/", runas: str | None = None) -> dict[str, dict[str, dict[str, str]]]:
    """Return the policies of a virtual host of RabbitMQ: a map of virtual host to a map of policy to ``pattern``,
    ``apply_to``, ``definition`` (JSON text) and ``priority``.

    CLI Example:

        salt '*' rabbitmq.list_policies /
    """
    found: dict[str, dict[str, dict[str, str]]] = {}
    for row in _rows(_ctl(ctx, ["list_policies", "-q", "-p", vhost], runas)):
        if len(row) not in (5, 6):
            continue
        place, name, *rest = row
        # Until 3.6 `apply to` is before the pattern, and may be missing.
        if len(rest) == 4:
            pattern, apply_to = rest[:2] if rest[1] in _APPLY_TO or rest[0] not in _APPLY_TO else (rest[1], rest[0])
            policy = {"pattern": pattern, "apply_to": apply_to}
        else:
            policy = {"pattern": rest[0]}
        found.setdefault(place, {})[name] = policy | {"definition": rest[-2], "priority": rest[-1]}
    return found


def policy_exists(ctx: Context, vhost: str, name: str, runas: str | None = None) -> bool:
    """Return whether a virtual host of RabbitMQ has a policy of this name.

    CLI Example:

        salt '*' rabbitmq.policy_exists / HA
    """
    return name in list_policies(ctx, vhost, runas).get(vhost, {})


def set_policy(
    ctx: Context,
    vhost: str,
    name: str,
    pattern: str,
    definition: object,
    priority: int | None = None,
    runas: str | None = None,
    apply_to: str | None = None,
) -> dict[str, str]:
    """Add or replace a policy of a virtual host of RabbitMQ. Return ``{"Set": output of rabbitmqctl}``.

    pattern
        regular expression of names of queues and exchanges
    definition
        map, or JSON text
    apply_to
        ``all``, ``queues``, ``exchanges`` ...

    CLI Example:

        salt '*' rabbitmq.set_policy / HA '.*' '{"ha-mode": "all"}'
    """
    if isinstance(definition, Mapping):
        definition = json.dumps(definition)
    if not isinstance(definition, str):
        raise InvocationError("The 'definition' argument must be a dictionary or JSON string")
    words = ["set_policy", "-p", vhost, *(["--priority", str(priority)] if priority else [])]
    words += [*(["--apply-to", apply_to] if apply_to else []), name, pattern, definition]
    return {"Set": _ctl(ctx, words, runas)}


def delete_policy(ctx: Context, vhost: str, name: str, runas: str | None = None) -> dict[str, str]:
    """Delete a policy of a virtual host of RabbitMQ. Return ``{"Deleted": output of rabbitmqctl}``.

    CLI Example:

        salt '*' rabbitmq.delete_policy / HA
    """
    return {"Deleted": _ctl(ctx, ["clear_policy", "-p", vhost, name], runas)}


def list_upstreams(ctx: Context, runas: str | None = None) -> dict[str, str]:
    """Return the parameters of RabbitMQ, upstreams among them: a map of name to definition (JSON text).

    CLI Example:

        salt '*' rabbitmq.list_upstreams
    """
    rows = _rows(_ctl(ctx, ["list_parameters", "-q"], runas))
    return {row[1]: row[2] for row in rows if len(row) == 3}


def upstream_exists(ctx: Context, name: str, runas: str | None = None) -> bool:
    """Return whether RabbitMQ has an upstream of this name (a server from which its plugin federation fetches
    messages).

    CLI Example:

        salt '*' rabbitmq.upstream_exists other
    """
    return name in list_upstreams(ctx, runas)


def set_upstream(
    ctx: Context,
    name: str,
    uri: object,
    prefetch_count: int | None = None,
    reconnect_delay: int | None = None,
    ack_mode: str | None = None,
    trust_user_id: bool | None = None,
    exchange: str | None = None,
    max_hops: int | None = None,
    expires: int | None = None,
    message_ttl: int | None = None,
    ha_policy: str | None = None,
    queue: str | None = None,
    runas: str | None = None,
) -> bool:
    """Add or replace an upstream: a server from which RabbitMQ's plugin federation fetches messages. Return True.
    The arguments are the parameters of its definition.

    CLI Example:

        salt '*' rabbitmq.set_upstream other amqp://ann:secret@other.example
    """
    definition = {
        "uri": uri,
        "prefetch-count": prefetch_count,
        "reconnect-delay": reconnect_delay,
        "ack-mode": ack_mode,
        "trust-user-id": trust_user_id,
        "exchange": exchange,
        "max-hops": max_hops,
        "expires": expires,
        "message-ttl": message_ttl,
        "ha-policy": ha_policy,
        "queue": queue,
    }
    given = {key: value for key, value in definition.items() if value}
    _ctl(ctx, ["set_parameter", "federation-upstream", name, json.dumps(given)], runas, quiet=True)
    return True


def delete_upstream(ctx: Context, name: str, runas: str | None = None) -> bool:
    """Delete an upstream of RabbitMQ's plugin federation. Return True. Raise CommandError if rabbitmqctl fails.

    CLI Example:

        salt '*' rabbitmq.delete_upstream other
    """
    _ctl(ctx, ["clear_parameter", "federation-upstream", name], runas)
    return True


# ------------------------------------------------------------------------------------------- node, cluster


def status(ctx: Context, runas: str | None = None) -> str:
    """Return the status of the RabbitMQ node as the text that rabbitmqctl prints.

    CLI Example:

        salt '*' rabbitmq.status
    """
    return _ctl(ctx, ["status"], runas)


def cluster_status(ctx: Context, runas: str | None = None) -> str:
    """Return the status of the RabbitMQ cluster as the text that rabbitmqctl prints.

    CLI Example:

        salt '*' rabbitmq.cluster_status
    """
    return _ctl(ctx, ["cluster_status"], runas)


def join_cluster(
    ctx: Context, host: str, user: str = "rabbit", ram_node: bool | None = None, runas: str | None = None
) -> dict[str, str]:
    """Stop RabbitMQ, join the cluster of the node ``user@host``, and start RabbitMQ again. Return ``{"Join": output
    of rabbitmqctl}``.

    ram_node
        True: keep metadata in memory only

    CLI Example:

        salt '*' rabbitmq.join_cluster rabbit1.example
    """
    stop_app(ctx, runas)
    result = _run(ctx, "rabbitmqctl", ["join_cluster", *(["--ram"] if ram_node else []), f"{user}@{host}"], runas)
    # The node must run again even if it could not join.
    start_app(ctx, runas)
    return {"Join": _output(result)}


def stop_app(ctx: Context, runas: str | None = None) -> str:
    """Stop the application RabbitMQ on this node; its Erlang runtime keeps running. Return the output of rabbitmqctl
    as text.

    CLI Example:

        salt '*' rabbitmq.stop_app
    """
    return _ctl(ctx, ["stop_app"], runas)


def start_app(ctx: Context, runas: str | None = None) -> str:
    """Start the application RabbitMQ on this node. Return the output of rabbitmqctl as text.

    CLI Example:

        salt '*' rabbitmq.start_app
    """
    return _ctl(ctx, ["start_app"], runas)


def reset(ctx: Context, runas: str | None = None) -> str:
    """Reset the RabbitMQ node to its first state: its data and its cluster membership are lost. Return the output of
    rabbitmqctl as text.

    CLI Example:

        salt '*' rabbitmq.reset
    """
    return _ctl(ctx, ["reset"], runas)


def force_reset(ctx: Context, runas: str | None = None) -> str:
    """Reset the RabbitMQ node, as ``rabbitmq.reset`` does, whatever the state of its database and its cluster.
    Return the output of rabbitmqctl as text.

    CLI Example:

        salt '*' rabbitmq.force_reset
    """
    return _ctl(ctx, ["force_reset"], runas)


# -------------------------------------------------------------------------------------------------- plugins


def list_available_plugins(ctx: Context, runas: str | None = None) -> list[str]:
    """Return the names of all plugins of RabbitMQ, enabled or not.

    CLI Example:

        salt '*' rabbitmq.list_available_plugins
    """
    return _words(_plugins(ctx, ["list", "-m"], runas))


def list_enabled_plugins(ctx: Context, runas: str | None = None) -> list[str]:
    """Return the names of the enabled plugins of RabbitMQ.

    CLI Example:

        salt '*' rabbitmq.list_enabled_plugins
    """
    return _words(_plugins(ctx, ["list", "-m", "-e"], runas))


def plugin_is_enabled(ctx: Context, name: str, runas: str | None = None) -> bool:
    """Return whether a plugin of RabbitMQ is enabled.

    CLI Example:

        salt '*' rabbitmq.plugin_is_enabled rabbitmq_management
    """
    return name in list_enabled_plugins(ctx, runas)


def enable_plugin(ctx: Context, name: str, runas: str | None = None) -> dict[str, str]:
    """Enable a plugin of RabbitMQ. Return ``{"Enabled": output of rabbitmq-plugins}``.

    CLI Example:

        salt '*' rabbitmq.enable_plugin rabbitmq_management
    """
    return {"Enabled": _plugins(ctx, ["enable", name], runas)}


def disable_plugin(ctx: Context, name: str, runas: str | None = None) -> dict[str, str]:
    """Disable a plugin of RabbitMQ. Return ``{"Disabled": output of rabbitmq-plugins}``.

    CLI Example:

        salt '*' rabbitmq.disable_plugin rabbitmq_management
    """
    return {"Disabled": _plugins(ctx, ["disable", name], runas)}


# -------------------------------------------------------------------------------------------------- helpers


def _ctl(ctx: Context, words: Sequence[str], runas: str | None, *, quiet: bool = False) -> str:
    return _output(_run(ctx, "rabbitmqctl", words, runas, quiet=quiet))


def _plugins(ctx: Context, words: Sequence[str], runas: str | None) -> str:
    program = ctx.host.which("rabbitmq-plugins")
    if program is None:
        version = str(ctx.call("pkg.version", "rabbitmq-server")).split("-")[0]
        program = f"/usr/lib/rabbitmq/lib/rabbitmq_server-{version}/sbin/rabbitmq-plugins"
    return _output(_run(ctx, program, words, runas))


def _run(
    ctx: Context, program: str, words: Sequence[str], runas: str | None, *, quiet: bool = False
) -> dict[str, object]:
    loglevel = {"output_loglevel": "quiet"} if quiet else {}
    command = [ctx.host.which(program) or program, *map(str, words)]
    result: dict[str, object] = ctx.call(
        "cmd.run_all", command, runas=runas, python_shell=False, ignore_retcode=True, **loglevel
    )
    return result


def _output(result: Mapping[str, object]) -> str:
    # The programs also write warnings to standard error; Salt takes them for a failure.
    if result["retcode"] or result["stderr"]:
        raise CommandError(f"RabbitMQ command failed: {result['stderr']}")
    return str(result["stdout"])


def _is_data(line: str) -> bool:
    title = line.startswith("Listing") and (line.endswith("...") or "\t" not in line)
    return bool(line) and not title and "...done" not in line and not line.startswith("WARNING:")


def _rows(output: str) -> list[list[str]]:
    """Return the rows of a table that rabbitmqctl printed, as lists of column texts, without titles and column
    names.
    """
    rows = [line.strip("\r\n").split("\t") for line in lines_of(output) if _is_data(line)]
    return rows[1:] if rows and tuple(rows[0]) in _HEADERS else rows


def _words(output: str) -> list[str]:
    return [word for line in lines_of(output) if _is_data(line) for word in line.split()]


def _queues(output: str, columns: Sequence[str]) -> dict[str, list[str]]:
    rows = _rows(output)
    rows = rows[1:] if columns and rows and tuple(rows[0]) == tuple(columns) else rows
    return {row[0]: row[1:] for row in rows}


def _tags(text: str) -> list[str]:
    inside = text[1:-1]
    return [each.strip() for each in inside.split(",")] if "," in text else inside.split(" ")


def _by(key: str, output: str) -> dict[str, dict[str, str]]:
    try:
        rows = json.loads(output)
    except ValueError as error:
        raise CommandError(f"RabbitMQ's list of permissions is no JSON: {error}") from error
    return {row[key]: {name: value for name, value in row.items() if name != key} for row in rows}


def _version(text: str) -> tuple[int, ...]:
    found = re.search(r'\{rabbit,"RabbitMQ","(.+)"\}', text) or re.search(r"RabbitMQ version:\s*(.+)", text)
    numbers = re.findall(r"\d+", found[1].split("-")[0]) if found else []
    return tuple(map(int, numbers)) if len(numbers) >= 3 else (0, 0, 0)
