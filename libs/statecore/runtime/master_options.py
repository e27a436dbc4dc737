"""Master's options that apply to a minion's state runs. Pure.

The options are those of the master's answer to ``_master_opts``. Salt: salt/state.py, BaseHighState.__gen_opts

Source: docs/protocol.md#master-options
"""

from __future__ import annotations

from collections.abc import Mapping

#: The master's value replaces the minion's.
_MASTERS = (
    *("default_top", "env_order", "failhard", "jinja_env", "jinja_lstrip_blocks", "jinja_sls_env", "jinja_trim_blocks"),
    *("nodegroups", "renderer", "state_auto_order", "state_top", "state_top_saltenv", "top_file_merging_strategy"),
)

#: On if the minion or the master has it on.
_EITHERS = ("state_aggregate", "state_events")


def heeded(opts: Mapping[str, object], answer: object) -> dict[str, object]:
    """Return the minion's options with the master's answer merged over them. An answer other than a map changes nothing."""
    if not isinstance(answer, Mapping):
        return dict(opts)
    told = {name: answer[name] for name in _MASTERS if name in answer}
    if isinstance(told.get("state_top"), str):
        told["state_top"] = told["state_top"].removeprefix("salt://").removeprefix("/")
    either = {name: opts.get(name) or answer.get(name) or False for name in _EITHERS}
    return {**opts, **told, **either}
