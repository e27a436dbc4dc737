"""Module ``cobbler`` of the option ``master_tops``: the management classes of a system in Cobbler are its SLS names.

.. code-block:: yaml

    master_tops:
      cobbler: {}
    cobbler.url: https://cobbler.example/cobbler_api   # default http://localhost/cobbler_api
    cobbler.user: salt                                 # default: no login
    cobbler.password: ...
"""

from __future__ import annotations

import xmlrpc.client
from collections.abc import Mapping

from statecore.model.context import Context
from statecore.model.errors import CommandError


def top(ctx: Context, **kwargs: object) -> dict[str, list[str]]:
    """Return ``{status: [management class, ...]}`` of one minion; the status of a system (production) is its saltenv.

    Raises CommandError if Cobbler does not answer or refuses.
    """
    opts = kwargs["opts"]
    minion_id = opts.get("id") if isinstance(opts, Mapping) else None
    if not minion_id:
        return {}
    url = str(ctx.opts.get("cobbler.url") or "http://localhost/cobbler_api")
    user, password = ctx.opts.get("cobbler.user"), ctx.opts.get("cobbler.password")
    try:
        with xmlrpc.client.ServerProxy(url, allow_none=True) as server:
            if user:
                server.login(user, password)
            data = server.get_blended_data(None, minion_id)
    except (OSError, xmlrpc.client.Error) as error:
        raise CommandError(f"Cobbler at {url}: {error}") from error
    if not isinstance(data, Mapping) or "status" not in data:
        return {}
    classes = data.get("mgmt_classes")
    return {str(data["status"]): [str(name) for name in classes] if isinstance(classes, list) else []}
