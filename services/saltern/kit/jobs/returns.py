"""Reads the return code in a minion's return, as the job cache stores returns."""

from __future__ import annotations

from collections.abc import Mapping

#: Printed if no minion matches. The text is Salt's, because scripts look for it.
NO_MATCH = "No minions matched the target. No command was sent, no jid was assigned."


def retcode_of(load: Mapping[str, object]) -> int:
    """Return the number ``retcode`` in a minion's return; 0 if it is missing, the largest if the job has several functions."""
    code = load.get("retcode") or 0
    codes = code.values() if isinstance(code, Mapping) else code if isinstance(code, list) else [code]
    return max((int(one) for one in codes if isinstance(one, int)), default=0)
