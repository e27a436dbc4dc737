"""``salt._compat`` for users' modules: names of the standard library that older modules import from here."""

from __future__ import annotations

import importlib.metadata as importlib_metadata
import ipaddress
import xml.etree.ElementTree as ElementTree

__all__ = ["ElementTree", "importlib_metadata", "ipaddress"]
