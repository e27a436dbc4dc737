"""Functions that apply and show states: Salt's ``state`` execution module. The state engine does the work.

``runs`` applies states, ``show`` shows what would be applied and analyses the tree, ``requests`` keeps tested runs for
later, ``switches`` disables states, ``pause_orders`` pauses or ends a run in progress. ``arguments`` reads the
arguments of all. ``statecore.runtime.state_runs.state_queue`` lets only one run at a time apply states.

Exit codes (``ctx.scratch["retcode"]``, as Salt's): 0; 1 when the run was refused or the tree does not compile; 2 when a
state failed; 5 when the pillar has errors.
"""

from __future__ import annotations

from typing import NoReturn

from statecore.builtin.modules.state import pause_orders, requests, runs, show, switches
from statecore.model.context import Context
from statecore.model.errors import CommandError

#: The modules that define the functions of ``state``.
PARTS = (runs, show, requests, switches, pause_orders)

OUTPUTTERS = dict.fromkeys(
    (
        *("apply", "sls", "sls_id", "highstate", "high", "single", "test", "top", "template", "template_str"),
        *("request", "run_request", "apply_plan"),
    ),
    "highstate",
)


def pkg(ctx: Context, *args: object, **kwargs: object) -> NoReturn:
    """Raise CommandError: Salt's function applies packages of salt-ssh, which Saltern does not have."""
    raise CommandError(
        "state.pkg is not available: it unpacks what salt-ssh sends; use state.apply, or salt-call --local"
    )


def orchestrate(ctx: Context, *args: object, **kwargs: object) -> NoReturn:
    """Raise CommandError: orchestration runs on the master only."""
    raise CommandError("state.orchestrate is not available on a minion: it belongs to the master (salt-run)")


def event(ctx: Context, *args: object, **kwargs: object) -> NoReturn:
    """Raise CommandError: Salt's function prints the events of the minion's bus, which Saltern's minions do not
    have.
    """
    raise CommandError("state.event is not available on a minion, which has no event bus: use 'salt-run state.event'")
