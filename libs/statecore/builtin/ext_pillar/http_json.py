"""External pillar ``http_json``: the JSON that a web server sends for a minion.

.. code-block:: yaml

    ext_pillar:
      - http_json:
          url: https://inventory.example/minions/%s?role=<role>
          with_grains: true
"""

from __future__ import annotations

from statecore.sources.http_pillar import HttpPillar

ext_pillar = HttpPillar("json").ext_pillar
