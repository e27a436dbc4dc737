"""Salt's ``rabbitmq_upstream`` states: upstreams of RabbitMQ's plugin federation."""

from __future__ import annotations

import json

from statecore.loader.compat.utils.dictdiffer import deep_diff
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Outcome, Plan, Step


def present(
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
) -> Plan:
    """Create the upstream ``name`` of RabbitMQ's plugin federation, or change it, so that it has exactly these
    parameters. The state fails if rabbitmqctl fails.

    uri
        address of the other server, or a list of addresses
    prefetch_count, reconnect_delay, ack_mode, trust_user_id, exchange, max_hops, expires, message_ttl, ha_policy, queue
        parameters of the upstream, in RabbitMQ's units; those that are not given are removed
    runas
        user who runs rabbitmqctl
    """
    given = {
        "prefetch_count": prefetch_count,
        "reconnect_delay": reconnect_delay,
        "ack_mode": ack_mode,
        "trust_user_id": trust_user_id,
        "exchange": exchange,
        "max_hops": max_hops,
        "expires": expires,
        "message_ttl": message_ttl,
        "ha_policy": ha_policy,
        "queue": queue,
    }
    parameters: dict[object, object] = {key.replace("_", "-"): value for key, value in given.items() if value}
    wanted: dict[object, object] = {"uri": uri, **parameters}
    try:
        upstreams = ctx.call("rabbitmq.list_upstreams", runas=runas)
        now = json.loads(upstreams[name]) if name in upstreams else None
    except (CommandError, ValueError) as error:
        return Plan.failed(f"Error: {error}")
    if now == wanted:
        return Plan.unchanged(f'Upstream "{name}" already present as specified.')
    action = "create" if now is None else "update"
    changes = {"old": None, "new": wanted} if now is None else deep_diff(now, wanted)

    def work() -> Outcome:
        try:
            ctx.call("rabbitmq.set_upstream", name, uri, **given, runas=runas)
        except CommandError as error:
            return Outcome(f"Error trying to {action} upstream: {error}", ok=False)
        return Outcome(f'Upstream "{name}" {action}d.', changes)

    return Plan.change(
        f'Upstream "{name}" would have been {action}d.', [Step(f"set the upstream {name}", work)], changes
    )


def absent(ctx: Context, name: str, runas: str | None = None) -> Plan:
    """Remove the upstream ``name`` of RabbitMQ's plugin federation. Nothing happens if there is none; the state fails
    if rabbitmqctl fails.

    runas
        user who runs rabbitmqctl
    """
    try:
        if not ctx.call("rabbitmq.upstream_exists", name, runas=runas):
            return Plan.unchanged(f'The upstream "{name}" is already absent.')
    except CommandError as error:
        return Plan.failed(f"Error: {error}")
    changes = {"old": name, "new": None}

    def work() -> Outcome:
        try:
            ctx.call("rabbitmq.delete_upstream", name, runas=runas)
        except CommandError as error:
            return Outcome(f"Error: {error}", ok=False)
        return Outcome(f'Upstream "{name}" has been deleted.', changes)

    return Plan.change(
        f'Upstream "{name}" would have been deleted.', [Step(f"delete the upstream {name}", work)], changes
    )
