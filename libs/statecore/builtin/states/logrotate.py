"""Salt's ``logrotate`` state: commands in the configuration of logrotate.

logrotate-wtmp-rotate:
  logrotate.set:
    - key: /var/log/wtmp
    - value: rotate
    - setting: 2
"""

from __future__ import annotations

from typing import Any

from statecore.model.context import Context
from statecore.model.types import Outcome, Plan, Step

ALIASES = {"set": "set_"}


def set_(
    ctx: Context, name: str, key: str, value: Any, setting: Any = None, conf_file: str = "/etc/logrotate.conf"
) -> Plan:
    """Set the value of a command in logrotate's configuration, or (with ``setting``) of a command in the block of a log
    file. Nothing happens if it has this value; the state fails if it cannot be set.

    key
        the command, or the log file of a block
    value
        the command's value; of a block, the command in it
    setting
        the value of the command in a block
    conf_file
        the configuration
    """
    if setting is None:
        wanted = _number(value)
        old = ctx.call("logrotate.get", key=key, conf_file=conf_file)
        what, given = f"command '{key}'", {"key": key, "value": wanted}
    else:
        wanted = _number(setting)
        old = ctx.call("logrotate.get", key=key, value=value, conf_file=conf_file)
        what, given = f"block '{key}' command '{value}'", {"key": key, "value": value, "setting": wanted}
    title = what[0].upper() + what[1:]
    if old == wanted:
        return Plan.unchanged(f"{title} already has value: {wanted}")
    changes = {"old": old, "new": wanted}

    def work() -> Outcome:
        if ctx.call("logrotate.set", conf_file=conf_file, **given):
            return Outcome(f"Set {what} value: {wanted}", changes)
        return Outcome(f"Unable to set {what} value: {wanted}", changes, ok=False)

    return Plan.change(f"{title} will be set to value: {wanted}", [Step(f"set {what}", work)], changes)


def _number(value: Any) -> Any:
    try:
        return int(str(value))
    except ValueError:
        return value
