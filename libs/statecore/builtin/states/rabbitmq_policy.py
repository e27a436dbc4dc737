"""Salt's ``rabbitmq_policy`` states: policies of RabbitMQ's virtual hosts."""

from __future__ import annotations

import json
from collections.abc import Mapping

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Outcome, Plan, Step


def present(
    ctx: Context,
    name: str,
    pattern: str,
    definition: object,
    priority: int = 0,
    vhost: str = "/",
    runas: str | None = None,
    apply_to: str | None = None,
) -> Plan:
    """Create the policy ``name`` of a RabbitMQ virtual host, or change it if it differs. The state fails if rabbitmqctl
    fails or the definition is not JSON.

    pattern
        regular expression of names of queues and exchanges
    definition
        map, or JSON text
    apply_to
        ``all``, ``queues``, ``exchanges`` ...; without it, what the policy applies to is not compared
    runas
        user who runs rabbitmqctl
    """
    text = json.dumps(definition) if isinstance(definition, Mapping) else str(definition)
    try:
        wanted = json.loads(text) if text else ""
    except ValueError as error:
        return Plan.failed(f"definition is no JSON: {error}")
    try:
        policy = ctx.call("rabbitmq.list_policies", vhost=vhost, runas=runas).get(vhost, {}).get(name)
    except CommandError as error:
        return Plan.failed(f"Error: {error}")
    updates = _updates(policy, pattern, wanted, priority, apply_to) if policy else []
    if policy and not updates:
        return Plan.unchanged(f"Policy {vhost} {name} is already present")
    changes = {"old": policy, "new": updates} if policy else {"old": {}, "new": name}

    def work() -> Outcome:
        try:
            answer = ctx.call(
                "rabbitmq.set_policy", vhost, name, pattern, text, priority=priority, runas=runas, apply_to=apply_to
            )
        except CommandError as error:
            return Outcome(f"Error: {error}", ok=False)
        return Outcome(answer["Set"], changes)

    would = f"Policy {vhost} {name} is set to be {'updated' if policy else 'created'}"
    return Plan.change(would, [Step(f"set the policy {name}", work)], changes)


def absent(ctx: Context, name: str, vhost: str = "/", runas: str | None = None) -> Plan:
    """Remove the policy ``name`` of a RabbitMQ virtual host. Nothing happens if there is none; the state fails if
    rabbitmqctl fails.

    runas
        user who runs rabbitmqctl
    """
    try:
        if not ctx.call("rabbitmq.policy_exists", vhost, name, runas=runas):
            return Plan.unchanged(f"Policy '{vhost} {name}' is not present.")
    except CommandError as error:
        return Plan.failed(f"Error: {error}")
    changes = {"new": "", "old": name}

    def work() -> Outcome:
        try:
            ctx.call("rabbitmq.delete_policy", vhost, name, runas=runas)
        except CommandError as error:
            return Outcome(f"Error: {error}", ok=False)
        return Outcome("Deleted", changes)

    return Plan.change(f"Policy '{vhost} {name}' will be removed.", [Step(f"remove the policy {name}", work)], changes)


def _updates(
    policy: Mapping[str, str], pattern: str, definition: object, priority: int, apply_to: str | None
) -> list[str]:
    """List of the names of those properties of an existing RabbitMQ policy that differ from the state's arguments, out
    of "Pattern", "Definition", "Applyto" and "Priority".
    """
    differing = {
        "Pattern": policy["pattern"] != pattern,
        "Definition": json.loads(policy["definition"] or '""') != definition,
        "Applyto": bool(apply_to) and policy.get("apply_to") != apply_to,
        "Priority": int(policy["priority"]) != int(priority),
    }
    return [name for name, differs in differing.items() if differs]
