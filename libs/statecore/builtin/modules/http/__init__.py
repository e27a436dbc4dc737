"""HTTP requests: Salt's ``http`` execution module."""

from __future__ import annotations

from statecore.builtin.modules.http import ca_bundle, queries

#: The modules whose public functions together are the execution module ``http``.
PARTS = (queries, ca_bundle)
