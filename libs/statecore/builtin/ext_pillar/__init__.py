"""External pillars that Saltern ships: each module has ``ext_pillar``, which returns further pillar of one minion."""
