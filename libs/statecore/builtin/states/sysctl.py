"""Salt's ``sysctl`` state: kernel parameters."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Outcome, Plan, Step


def present(ctx: Context, name: str, value: object, config: str | None = None) -> Plan:
    """Set the kernel parameter ``name`` now and for later boots. ``config``: file that stores the value for later
    boots.
    """
    file = config or ctx.call("sysctl.default_config")
    try:
        configured = ctx.call("sysctl.show", config_file=file) or {}
        current = ctx.call("sysctl.get", name)
    except CommandError as error:
        return Plan.failed(f"Failed to set {name} to {value}: {error}")
    wanted = str(value).split()
    if str(configured.get(name, "")).split() == wanted == current.split():
        return Plan.unchanged(f"Sysctl value {name} = {value} is already set")

    def work() -> Outcome:
        try:
            done = ctx.call("sysctl.persist", name, value, file)
        except CommandError as error:
            return Outcome(f"Failed to set {name} to {value}: {error}", ok=False)
        if done == "Already set":
            return Outcome(f"Sysctl value {name} = {value} is already set")
        return Outcome(f"Updated sysctl value {name} = {value}", {name: value})

    would = f"Sysctl option {name} would be changed to {value}"
    if current and name not in configured:
        would = f"Sysctl option {name} set to be changed to {value}"
        if current.split() == wanted:
            where = "Sysctl value is currently set on the running system but not in a config file. "
            would = f"{where}{would} in config file."
    elif not current and name in configured:
        where = f"Sysctl value {name} is present in configuration file but is not present in the running config. "
        would = f"{where}The value {name} is set to be changed to {value}"
    return Plan.change(would, [Step(f"set {name} to {value}", work)])
