"""External pillar ``http_yaml``: the YAML that a web server sends for a minion.

.. code-block:: yaml

    ext_pillar:
      - http_yaml:
          url: https://inventory.example/minions/%s?role=<role>
          with_grains: true
"""

from __future__ import annotations

from collections.abc import Mapping

from statecore.model.context import Context
from statecore.sources.http_pillar import Login, document


def ext_pillar(
    ctx: Context,
    minion_id: str,
    pillar: dict[str, object],
    url: str,
    with_grains: bool = False,
    header_dict: Mapping[str, object] | None = None,
    auth: object = None,
    username: str | None = None,
    password: str | None = None,
    namespace: str | None = None,
) -> object:
    """Return the data that the server sends.

    url
        address; ``%s`` is the minion's id
    with_grains
        replace ``<grain>`` in the address by the minion's grain
    header_dict
        headers of the request
    auth
        list of user and password
    username, password
        the same, one by one
    namespace
        key of pillar for the data; without it the data stands at the top

    Raises CommandError if a grain is missing or the server does not send YAML.
    """
    login = Login(header_dict, auth, username, password)
    data = document(ctx, minion_id, url, "yaml", with_grains, login)
    return {namespace: data} if namespace else data
