"""Values that a formula's SLS files import: Salt's ``jinja`` execution module, to inspect maps and data files."""

from __future__ import annotations

import json
import re

from statecore.model.context import Context
from statecore.model.errors import InvocationError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def load_map(ctx: Context, path: str, value: str) -> object:
    """Return the value of the variable ``value`` in a Jinja template of the state tree, such as a formula's map.jinja.
    Raise InvocationError if ``value`` is not a variable's name.

    CLI Example:

        salt '*' jinja.load_map myformula/map.jinja myformula
    """
    if _NAME.fullmatch(str(value)) is None:
        raise InvocationError(f"'{value}' is not a valid name of a template variable")
    return _value(ctx, f"{{% from {_quoted(path)} import {value} with context %}}", str(value))


def import_yaml(ctx: Context, path: str) -> object:
    """Return the parsed content of a YAML file of the state tree, which is rendered by Jinja first.

    CLI Example:

        salt '*' jinja.import_yaml myformula/defaults.yaml
    """
    return _value(ctx, f"{{% import_yaml {_quoted(path)} as imported %}}", "imported")


def import_json(ctx: Context, path: str) -> object:
    """Return the parsed content of a JSON file of the state tree, which is rendered by Jinja first.

    CLI Example:

        salt '*' jinja.import_json myformula/defaults.json
    """
    return _value(ctx, f"{{% import_json {_quoted(path)} as imported %}}", "imported")


def _value(ctx: Context, importing: str, name: str) -> object:
    text = ctx.templates.render(f"{importing}{{{{ {name} | tojson }}}}", "jinja", {}, saltenv=ctx.saltenv)
    return json.loads(text)


def _quoted(path: str) -> str:
    return json.dumps(str(path))
