"""Salt's ``rabbitmq_vhost`` states: virtual hosts of RabbitMQ."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Outcome, Plan, Step


def present(ctx: Context, name: str) -> Plan:
    """Create the virtual host ``name`` of RabbitMQ. Nothing happens if it exists; the state fails if rabbitmqctl
    fails.
    """
    return _plan(ctx, name, wanted=True)


def absent(ctx: Context, name: str) -> Plan:
    """Remove the virtual host ``name`` of RabbitMQ. Nothing happens if it does not exist; the state fails if
    rabbitmqctl fails.
    """
    return _plan(ctx, name, wanted=False)


def _plan(ctx: Context, name: str, *, wanted: bool) -> Plan:
    try:
        there = ctx.call("rabbitmq.vhost_exists", name)
    except CommandError as error:
        return Plan.failed(f"Error: {error}")
    if there == wanted:
        return Plan.unchanged(f"Virtual Host '{name}' {'already exists' if wanted else 'is not present'}.")
    changes = {"old": "", "new": name} if wanted else {"old": name, "new": ""}

    def work() -> Outcome:
        try:
            answer = ctx.call(f"rabbitmq.{'add' if wanted else 'delete'}_vhost", name)
        except CommandError as error:
            return Outcome(f"Error: {error}", ok=False)
        return Outcome(next(iter(answer.values())), changes)

    verb = "created" if wanted else "removed"
    return Plan.change(
        f"Virtual Host '{name}' will be {verb}.", [Step(f"{verb[:-1]} the virtual host {name}", work)], changes
    )
