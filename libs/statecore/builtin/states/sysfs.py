"""Salt's ``sysfs`` state: attributes of the kernel's objects below /sys.

kernel/mm/transparent_hugepage/enabled:
  sysfs.present:
    - value: always
"""

from __future__ import annotations

import re

from statecore.model.context import Context
from statecore.model.types import Outcome, Plan, Step


def present(ctx: Context, name: str, value: object, config: object = None) -> Plan:
    """Set an attribute of the kernel below /sys until the next start. Nothing happens if it is set; the state fails if
    there is no such attribute.

    name
        the path below /sys
    value
        the value; of an attribute that lists its choices, the one in brackets counts
    config
        no effect, as in Salt
    """
    now = ctx.call("sysfs.read", name)
    if now is False:
        return Plan.failed(f"SysFS attribute {name} doesn't exist.")
    if isinstance(now, dict):
        return Plan.failed(f"{name} is not a SysFS attribute.")
    if isinstance(now, str):
        now = re.sub(r"(.*\[|\].*)", "", now)
    if value == now:
        return Plan.unchanged(f"SysFS attribute {name} is already set.")

    def work() -> Outcome:
        if not ctx.call("sysfs.write", name, value):
            return Outcome(f"Failed to set {name} to {value}", ok=False)
        return Outcome(f"Updated SysFS attribute {name} to {value}", {name: value})

    return Plan.change(f"SysFS attribute {name} set to be changed.", [Step(f"write {name}", work)])
