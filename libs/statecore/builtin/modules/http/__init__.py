"""Requests over HTTP (Salt's ``http`` module): web hooks, and whether a server answers as it should."""

from __future__ import annotations

from statecore.builtin.modules.http import ca_bundle, queries

#: The modules whose functions make up this one.
PARTS = (queries, ca_bundle)
