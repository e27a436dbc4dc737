"""``salt.utils.aggregation`` for users' modules: marks maps and lists, so that they are joined with later ones instead
of being replaced.
"""

from __future__ import annotations

from statecore.model.aggregation import Aggregate as Aggregate
from statecore.model.aggregation import Map as Map
from statecore.model.aggregation import Sequence as Sequence
from statecore.model.aggregation import aggregate as aggregate
from statecore.model.aggregation import levelise as levelise
from statecore.model.aggregation import mark as mark
from statecore.model.aggregation import scalar as Scalar

__all__ = ["Aggregate", "Map", "Scalar", "Sequence", "aggregate", "levelise", "mark"]
