"""Applying and showing states (Salt's ``state`` module). The work is done by the state system; here are its verbs.

``runs`` applies, ``shows`` tells what would be applied, ``views`` looks at it more closely, ``requests`` keeps runs for later,
``switches`` forbids them, ``orders`` speaks to one in progress. ``arguments`` reads what all of them are called with;
``statecore.runtime.state_runs.state_queue`` sees to it that one runs at a time.

Exit codes (``ctx.scratch["retcode"]``, Salt's): 0, 1 refused or the tree does not compile, 2 a state failed, 5 the pillar has
errors.
"""

from __future__ import annotations

from statecore.builtin.modules.state import elsewhere, orders, requests, runs, shows, switches, views

#: The modules whose functions make up this one.
PARTS = (runs, shows, views, requests, switches, orders, elsewhere)

OUTPUTTERS = dict.fromkeys(
    (
        *("apply", "sls", "sls_id", "highstate", "high", "single", "test", "top", "template", "template_str"),
        *("request", "run_request"),
    ),
    "highstate",
)
