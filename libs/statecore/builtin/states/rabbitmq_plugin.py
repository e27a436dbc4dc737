"""Salt's ``rabbitmq_plugin`` states: plugins of RabbitMQ."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Outcome, Plan, Step


def enabled(ctx: Context, name: str, runas: str | None = None) -> Plan:
    """Enable the plugin ``name`` of RabbitMQ. Nothing happens if it is enabled; the state fails if rabbitmq-plugins
    fails.

    runas
        user who runs rabbitmq-plugins
    """
    return _plan(ctx, name, runas, wanted=True)


def disabled(ctx: Context, name: str, runas: str | None = None) -> Plan:
    """Disable the plugin ``name`` of RabbitMQ. Nothing happens if it is disabled; the state fails if rabbitmq-plugins
    fails.

    runas
        user who runs rabbitmq-plugins
    """
    return _plan(ctx, name, runas, wanted=False)


def _plan(ctx: Context, name: str, runas: str | None, *, wanted: bool) -> Plan:
    verb = "enable" if wanted else "disable"
    try:
        there = ctx.call("rabbitmq.plugin_is_enabled", name, runas=runas)
    except CommandError as error:
        return Plan.failed(f"Error: {error}")
    if there == wanted:
        return Plan.unchanged(f"Plugin '{name}' is already {verb}d.")
    changes = {"old": "", "new": name} if wanted else {"old": name, "new": ""}

    def work() -> Outcome:
        try:
            ctx.call(f"rabbitmq.{verb}_plugin", name, runas=runas)
        except CommandError as error:
            return Outcome(f"Error: {error}", ok=False)
        return Outcome(f"Plugin '{name}' was {verb}d.", changes)

    return Plan.change(f"Plugin '{name}' is set to be {verb}d.", [Step(f"{verb} the plugin {name}", work)], changes)
