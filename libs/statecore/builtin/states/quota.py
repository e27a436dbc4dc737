"""Salt's ``quota`` state: whether the kernel enforces the quotas of a file system.

/:
  quota.mode:
    - mode: off
    - quotatype: user
"""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.types import Outcome, Plan, Step


def mode(ctx: Context, name: str, mode: bool, quotatype: str) -> Plan:
    """Turn the quotas of the file system at the mount point ``name`` on or off. The state fails if the file system has
    no quotas of this type.

    mode
        on (True) or off (False)
    quotatype
        user or group
    """
    wanted = "on" if mode is True else "off"
    now = ctx.call("quota.get_mode", name).get(name)
    if not isinstance(now, dict) or quotatype not in now:
        return Plan.failed(f"Failed to set quota for {name} to {wanted}: the file system has no {quotatype} quotas")
    if now[quotatype] == wanted:
        return Plan.unchanged(f"Quota for {name} already set to {wanted}")

    def work() -> Outcome:
        if ctx.call(f"quota.{wanted}", name):
            return Outcome(f"Set quota for {name} to {wanted}", {"quota": name})
        return Outcome(f"Failed to set quota for {name} to {wanted}", ok=False)

    return Plan.change(f"Quota for {name} needs to be set to {wanted}", [Step(f"set the quotas of {name}", work)])
