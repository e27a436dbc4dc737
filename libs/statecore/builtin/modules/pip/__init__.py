"""Python packages in a virtual environment or in a Python of the managed host: Salt's ``pip`` execution module.

``program`` finds and runs pip, ``requirements`` copies requirements files to a place where pip can read them,
``cli_options`` translates arguments into pip's options, ``installation`` changes packages, ``queries`` lists them.
"""

from __future__ import annotations

from statecore.builtin.modules.pip import installation, queries

#: The modules that define the functions of ``pip``.
PARTS = (installation, queries)

#: Names with an underscore are internal: states call them.
ALIASES = {
    "list": "list_",
    "_list_editable": "list_editable",
    "_requirements_met": "requirements_met",
    "_requirements_texts": "requirements_texts",
}

list_ = queries.list_
list_editable = queries.list_editable
requirements_met = queries.requirements_met
requirements_texts = queries.requirements_texts
