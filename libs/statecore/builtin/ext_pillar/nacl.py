"""External pillar ``nacl``: the pillar so far, with its values ``NACL[...]`` decrypted.

.. code-block:: yaml

    nacl.config:
      sk_file: /etc/salt/pki/master/nacl

    ext_pillar:
      - stack: /srv/stack/stack.cfg
      - nacl: {}

It comes after the sources of those values. The extra ``saltern-statecore[nacl]`` brings PyNaCl.
"""

from __future__ import annotations

from statecore.model.context import Context
from statecore.render.renderers import nacl_messages


def ext_pillar(ctx: Context, minion_id: str, pillar: dict[str, object], *args: object, **kwargs: object) -> object:
    """Return the pillar so far with every value ``NACL[...]`` decrypted. Arguments are ignored, as in Salt.

    Raises CommandError if there is no key, or a value cannot be decrypted.
    """
    return nacl_messages.decrypted(pillar, ctx.opts)
