"""Functions that apply and show states: Salt's ``state`` execution module. The state engine does the work.

``runs`` applies states, ``show`` returns what would be applied, ``analysis`` analyses the tree, ``requests`` keeps
tested runs for later, ``switches`` disables states, ``pause_orders`` pauses or ends a run in progress. ``arguments``
reads the arguments of all. ``statecore.runtime.state_runs.state_queue`` lets only one run at a time apply states.

Exit codes (``ctx.scratch["retcode"]``, as Salt's): 0; 1 when the run was refused or the tree does not compile; 2 when a
state failed; 5 when the pillar has errors.
"""

from __future__ import annotations

from statecore.builtin.modules.state import analysis, pause_orders, requests, runs, show, switches, unavailable

#: The modules that define the functions of ``state``.
PARTS = (runs, show, analysis, requests, switches, pause_orders, unavailable)

OUTPUTTERS = dict.fromkeys(
    (
        *("apply", "sls", "sls_id", "highstate", "high", "single", "test", "top", "template", "template_str"),
        *("request", "run_request"),
    ),
    "highstate",
)
