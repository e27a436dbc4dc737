"""Engine ``test``: writes each event of the bus to the log, as an example.

```yaml
engines:
  - test: {}
```
"""

from __future__ import annotations

import json
import logging

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.minion_bus import Subscription, bus_directory

_LOG = logging.getLogger(__name__)

#: Seconds of one wait for events.
_WAIT = 3600.0


def start(ctx: Context) -> None:
    """Log every event of the master's bus, or of the minion's own bus, at level debug. Never return."""
    directory = bus_directory(ctx.opts)
    if ctx.master is None and directory is None:
        raise CommandError("there is no cachedir, so this minion has no bus")
    subscription = Subscription(directory) if ctx.master is None and directory is not None else None
    _LOG.debug("the engine test listens")
    while True:
        heard = (
            ctx.master.events("", _WAIT)
            if ctx.master is not None
            else subscription.events(_WAIT)
            if subscription
            else ()
        )
        for tag, data in heard:
            _LOG.debug("%s", json.dumps({"tag": tag, "data": dict(data)}, default=str))
