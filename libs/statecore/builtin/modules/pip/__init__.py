"""Python packages by pip (Salt's ``pip`` module): of a virtual environment, or of a Python of the managed host.

``program`` finds pip, ``requirements`` brings requirements files to where it can read them, ``words`` turns arguments into
its options, ``installing`` changes what is installed, ``looking`` tells of it.
"""

from __future__ import annotations

from statecore.builtin.modules.pip import installation, queries

#: The modules whose functions make up this one.
PARTS = (installation, queries)

ALIASES = {"list": "list_"}

list_ = queries.list_
