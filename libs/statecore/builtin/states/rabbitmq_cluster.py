"""Salt's ``rabbitmq_cluster`` states: the cluster of a node of RabbitMQ."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Outcome, Plan, Step

ALIASES = {"join": "joined", "joined": "joined"}


def joined(
    ctx: Context, name: str, host: str, user: str = "rabbit", ram_node: bool | None = None, runas: str | None = "root"
) -> Plan:
    """Join the RabbitMQ cluster of the node ``user@host`` with the node on this host. Nothing happens if it is in that
    cluster; the state fails if rabbitmqctl fails.

    name
        not used
    ram_node
        True: keep metadata in memory only
    runas
        user who runs rabbitmqctl
    """
    node = f"{user}@{host}"
    try:
        if node in ctx.call("rabbitmq.cluster_status"):
            return Plan.unchanged("Already in cluster")
    except CommandError as error:
        return Plan.failed(f"Error: {error}")
    changes = {"old": "", "new": node}

    def work() -> Outcome:
        try:
            answer = ctx.call("rabbitmq.join_cluster", host, user, ram_node, runas=runas)
        except CommandError as error:
            return Outcome(f"Error: {error}", ok=False)
        return Outcome(answer["Join"], changes)

    return Plan.change(f"Node is set to join cluster {node}", [Step(f"join the cluster of {node}", work)], changes)
